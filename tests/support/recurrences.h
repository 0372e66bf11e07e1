// SPDX-License-Identifier: Apache-2.0
// Programs with recurrences, for every target; some can be said by an unrolled loop as well.
#pragma once
#include <string>

namespace einc {

// LOOP in the text is the loop's word and range; `unrolled`: how `for` says it. START is what the first carry begins with.
struct Recurrence {
  const char* name;
  const char* text;
  const char* scan;
  const char* unrolled;  // null: none says it
};

inline constexpr Recurrence kRecurrences[] = {
    {"a plain cell, its carry a bare number",
     R"(input x: [batch=2 time=5 feat=3]
param w: [feat hidden=4] ~ normal
param u: [hidden=4 h2=4] ~ normal
param b: [hidden=4] ~ normal
h = START
LOOP {
  r: [batch hidden] = einsum(h, u, "batch hidden, hidden h2 -> batch h2")
  h = tanh(einsum(x[time = t], w, "batch feat, feat hidden -> batch hidden") + b + r)
}
minimize mean(h^2) using sgd(lr = 0.1)
output h
)",
     "scan t in time", "for t in 5"},
    {"weights that a backward reads across, more than one panel of them",
     R"(input x: [time=3 batch=5 n=40]
param u: [n n2=40] ~ normal(std = 0.2)
param w: [g=2 n2=40 n] ~ normal(std = 0.2)
h = 0
LOOP {
  r: [batch n] = einsum(h, u, "batch n, n n2 -> batch n2")
  q = einsum(r, w, "batch n2, g n2 n -> batch g n")
  h = tanh(q[g = 0] + x[time = t]) * sigmoid(q[g = 1])
}
minimize mean(h^2) using sgd(lr = 0.1)
output h
)",
     "scan t in time", nullptr},
    {"some carries kept, what lies between made again, with draws and what is collected",
     R"(input x: [batch=2 time=6 feat=3]
param w: [feat hidden=4] ~ normal
param u: [hidden=4 h2=4] ~ normal
h = START
s = 0
LOOP {
  r: [batch hidden] = einsum(h, u, "batch hidden, hidden h2 -> batch h2")
  h = tanh(einsum(x[time = t], w, "batch feat, feat hidden -> batch hidden") + dropout(r, 0.4)) + 0.1 * normal(hidden)
  s = s * 0.5 + h^2 * (t + 1)
}
minimize mean(h^2) + mean(s) using sgd(lr = 0.1)
output h
output s
)",
     "scan t in time, save every 2", nullptr},
    {"a gradient of a gradient, whose scans hand on what they have got",
     R"(input x: [time=4 n=3]
param w: [n] ~ normal
h = w
LOOP {
  h = h * w + x[time = t]
}
slope = grad(sum(h^2), w)
minimize sum(slope^2) + sum(h) using sgd(lr = 0.1)
output slope
)",
     "scan t in time", "for t in 4"},
    {"an LSTM",
     R"(input x: [batch=2 time=4 feat=3]
param w: [feat gate=4 hidden=4] ~ normal
param u: [h=4 gate=4 hidden=4] ~ normal
h = 0 * einsum(x[time = 0], w[gate = 0], "batch feat, feat hidden -> batch hidden")
c = h
LOOP {
  z = einsum(x[time = t], w, "batch f, f gate hidden -> batch gate hidden") + einsum(h, u, "batch h, h gate hidden -> batch gate hidden")
  c = sigmoid(z[gate = 1]) * c + sigmoid(z[gate = 0]) * tanh(z[gate = 2])
  h = sigmoid(z[gate = 3]) * tanh(c)
}
minimize mean(h * c) using sgd(lr = 0.1)
output h
)",
     "scan t in time", "for t in 4"},
    {"masked by lengths known when running",
     R"(input x: [batch=3 time=5 hidden=4]
input lengths: i32[batch=3]
param u: [hidden h2=4] ~ normal
h = 0 * x[time = 0]
LOOP {
  next: [batch hidden] = tanh(einsum(h, u, "batch h, h h2 -> batch h2"))
  h = where(t < lengths, next + x[time = t], h)
}
minimize mean(h^2) using sgd(lr = 0.1)
output h
)",
     "scan t in time", "for t in 5"},
    {"numbers that change places",
     R"(input x: i32[n=3]
a = x
b = x + 1
LOOP {
  a, b = (b, a + b)
}
output a
output b
)",
     "scan t in steps=7", "for t in 7"},
    {"a product that is summed, with a loop unrolled inside",
     R"(input x: [time=6 m=3]
input y: [time=6 n=2]
param p: [m=3 n=2] ~ normal
s = p * 0.5
LOOP {
  for k in 2 {
    s = s * 0.5 + einsum(x[time = t], y[time = t], "m, n -> m n") * p
  }
}
minimize mean(s^2) using sgd(lr = 0.1)
output s
)",
     "scan t in time", "for t in 6"},
    {"recurrences in each other",
     R"(input x: [time=4 depth=3 n=5]
param u: [depth=3 n=5 n2=5] ~ normal(std = 0.4)
h = x[time = 0, depth = 0]
LOOP {
  g = h
  scan d in depth {
    g = tanh((einsum(g, u[depth = d], "n, n n2 -> n2")): [n] + x[time = t, depth = d])
  }
  h = h * 0.5 + g
}
minimize sum(h^2) using sgd(lr = 0.1)
output h
)",
     "scan t in time", "for t in 4"},
    {"positions computed in the iteration, and values from outside handed on",
     R"(input x: [time=5 n=4]
param p: [n=4] ~ normal
h = p
last = p * 0
LOOP {
  h = h * x[time = 4 - t] + last
  last = p
}
minimize mean(h^2) using sgd(lr = 0.1)
output h
)",
     "scan t in time", "for t in 5"},
    {"gradients inside",
     R"(param w: [n=4] ~ normal
param rate: [] ~ constant(0.3)
v = w
LOOP {
  v = v - rate * grad(sum(v^4 * 0.1 + v^2), v)
}
minimize sum(v^2) using sgd(lr = 0.1)
output v
)",
     "scan t in steps=4", "for t in 4"},
    {"a norm, a softmax and another precision inside",
     R"(input x: [time=3 batch=2 n=6]
param u: [n=6 n2=6] ~ normal
h = x[time = 0]
LOOP {
  precision f32 {
    a = softmax((einsum(h, u, "batch n, n n2 -> batch n2")): [batch n], n)
  }
  h = (a - mean(a, n)) * rsqrt(mean(a^2, n) + 0.1) + x[time = t]
}
minimize mean(h^3) using sgd(lr = 0.1)
output h
)",
     "scan t in time", "for t in 3"},
    {"what is collected, in both directions",
     R"(input x: [time=5 batch=2 n=3]
param w: [n=3] ~ normal
h = 0
LOOP {
  h = tanh(h * w + x[time = t])
  collect hs = h * 2
}
g = 0
scan t in reversed(time) {
  g = g * 0.5 + hs[time = t] * w
  collect gs = g
}
minimize mean(gs * hs + g) using sgd(lr = 0.1)
output hs
output gs
)",
     "scan t in time", nullptr},
    {"branches inside, one open until the graph is asked",
     R"(input x: [batch=2 time=5 n=3]
param w: [n] ~ normal
h = 0
LOOP {
  if training { h = h * w + 0.3 * x[time = t] } else { h = h + x[time = t] }
  if n > 2 { h = tanh(h) }
}
minimize mean(h^2) using sgd(lr = 0.1)
output h
)",
     "scan t in time", "for t in 5"},
    {"in a fn, under the caller's names, with draws and params of its own",
     R"(input x: [batch=2 frames=4 n=3]
fn smooth(x: [... time c]) {
  param decay: [c] ~ constant(0.5)
  h = 0
  scan t in time {
    h = h * decay + dropout(x[time = t], 0.5) + 0.1 * normal(c)
    collect hs = h
  }
  return hs
}
y: [frames batch n] = smooth(x)
z: [batch frames n] = smooth(y) as second
minimize mean(z^2) using sgd(lr = 0.1)
output z
LOOP {
}
)",
     "for t in 1", nullptr},
};

inline std::string written(const Recurrence& r, const char* loop, bool zeros) {
  std::string text = r.text;
  const auto put = [&](const std::string& word, const std::string& by) {
    if (const size_t at = text.find(word); at != std::string::npos) text.replace(at, word.size(), by);
  };
  put("LOOP", loop);
  put("START", zeros ? "0 * einsum(x[time = 0], w, \"batch feat, feat hidden -> batch hidden\")" : "0");
  return text;
}

}  // namespace einc
