setlocal commentstring=#\ %s comments=:# shiftwidth=2 expandtab formatoptions-=t
setlocal makeprg=einc\ fmt\ --check\ %
