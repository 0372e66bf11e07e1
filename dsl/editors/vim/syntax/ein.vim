" Highlighting of einc's .ein files.
if exists("b:current_syntax")
  finish
endif

syntax keyword einStatement dim import input param frozen state output fn return for in precision minimize over using as
syntax keyword einStatement and or not scan collect if else gradient save every reversed mesh shard
syntax keyword einConstant true false inf nan pi training
syntax keyword einType f64 f32 bf16 f16 f8e4m3 f8e5m2 i64 i32 u16 u8 bool
syntax keyword einFunction abs acos all any argmax argmin argsort asin atan atan2 bernoulli cast categorical ceil clamp
syntax keyword einFunction concat cos cosh cross_entropy cummax cummin cumprod cumsum dropout einsum erf erfc erfinv exp
syntax keyword einFunction expm1 flip floor full gelu gelu_tanh grad iota isfinite isinf isnan jvp lgamma like log log1p
syntax keyword einFunction log_softmax logcumsumexp logsumexp max mean min norm normal one_hot ones pack pad permutation
syntax keyword einFunction pow prod randint rearrange reduce relu rename repeat round rsqrt segment_max segment_mean
syntax keyword einFunction segment_min segment_sum sigmoid sign silu sin sinh softmax softplus sort sqrt stack std
syntax keyword einFunction stop_gradient sum tan tanh top_k top_k_index trunc uniform unpack updated var vjp where zeros

syntax match einNumber "\v<[0-9][0-9_]*(\.[0-9_]*)?([eE][+-]?[0-9]+)?>"
syntax match einOperator "<-\|[<>=!]=\|[-+*/%^<>=~]"
syntax match einArrow "->" contained
syntax match einEllipsis "\.\.\." contained
syntax match einAxis "\<[A-Za-z][A-Za-z0-9_]*\>" contained
syntax region einString start=+"+ end=+"+ oneline contains=einArrow,einEllipsis,einAxis
syntax match einComment "#.*$" contains=@Spell

highlight default link einStatement Statement
highlight default link einConstant Constant
highlight default link einType Type
highlight default link einFunction Function
highlight default link einNumber Number
highlight default link einOperator Operator
highlight default link einArrow Operator
highlight default link einEllipsis Operator
highlight default link einAxis Identifier
highlight default link einString String
highlight default link einComment Comment

let b:current_syntax = "ein"
