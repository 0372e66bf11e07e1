" SPDX-License-Identifier: Apache-2.0
" The colours of dsl/editors/vim in a real Vim or Neovim: what stands at which place of a program. Run as
"   vim -Nu NONE -es -S colours.vim, with $EINC_EDITORS the folder of the files; ends with status 1 and the differences.
execute 'set runtimepath^=' . $EINC_EDITORS . '/vim'
filetype plugin on
syntax on
let s:file = tempname() . '.ein'
call writefile(['dim batch = 4  # how many', 'h = einsum(x, w, "a b, ... -> a")', 'fn foo(x: f32[batch]) { return relu(x) }'], s:file)
execute 'edit ' . s:file
let s:wrong = []
if &filetype !=# 'ein'
  call add(s:wrong, 'the file type is ' . &filetype)
endif
for [s:line, s:word, s:group] in [
      \ [1, 'dim', 'einStatement'], [1, '4', 'einNumber'], [1, '# how', 'einComment'], [1, 'batch', ''],
      \ [2, 'einsum', 'einFunction'], [2, '=', 'einOperator'], [2, '"a', 'einString'], [2, 'b,', 'einAxis'], [2, '\.\.\.', 'einEllipsis'],
      \ [2, '->', 'einArrow'], [3, 'fn', 'einStatement'], [3, 'f32', 'einType'], [3, 'return', 'einStatement'], [3, 'relu', 'einFunction']]
  let s:column = match(getline(s:line), s:word) + 1
  let s:found = synIDattr(synID(s:line, s:column, 1), 'name')
  if s:found !=# s:group
    call add(s:wrong, printf('line %d, %s: %s, not %s', s:line, s:word, s:found, s:group))
  endif
endfor
if &commentstring !=# '# %s'
  call add(s:wrong, 'comments are ' . &commentstring)
endif
call delete(s:file)
if empty(s:wrong)
  qall!
endif
call writefile(s:wrong, '/dev/stderr')
cquit!
