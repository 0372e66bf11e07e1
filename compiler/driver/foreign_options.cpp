// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/foreign_options.h"

namespace einc {

std::span<const ForeignOption> foreign_options() {
  static constexpr ForeignOption kOptions[] = {
      {"--atol", "--tolerance", "--tolerance sets the largest relative error"},
      {"--batch", "-D", "a size is a dim of the program: -D batch=16"},
      {"--batch-size", "-D", "a size is a dim of the program: -D batch=16"},
      {"--batch_size", "-D", "a size is a dim of the program: -D batch=16"},
      {"--bs", "-D", "a size is a dim of the program: -D batch=16"},
      {"--ckpt", "--checkpoint", "write --checkpoint DIR"},
      {"--cuda", "--target", "write --target=cuda"},
      {"--context", "-D", "a size is a dim of the program: -D seq=1024"},
      {"--cost", "--report", "write --report"},
      {"--dataset", "--data", "write --data NAME=FILE"},
      {"--diff", "--check", "--check names the files that are not formatted, --stdout prints the formatted text"},
      {"--encoding", "--kind", "write --kind gpt2, or --vocab FILE"},
      {"--eps", "--tolerance", "the step is chosen for each element; --tolerance sets the largest relative error"},
      {"--epsilon", "--tolerance", "the step is chosen for each element; --tolerance sets the largest relative error"},
      {"--epoch", "--steps", "--steps counts batches: an epoch is the rows of the data by the batch"},
      {"--epochs", "--steps", "--steps counts batches: an epoch is the rows of the data by the batch"},
      {"--flops", "--report", "the report counts them: write --report"},
      {"--gpu", "--target", "write --target=cuda"},
      {"--gpu", "--device", "write --device=h200, or another of einc --list-devices"},
      {"--gpus", "--devices", "write --devices N"},
      {"--num-gpus", "--devices", "write --devices N"},
      {"--in-place", "--stdout", "files are formatted in place without an option"},
      {"--inplace", "--stdout", "files are formatted in place without an option"},
      {"--iterations", "--steps", "write --steps N"},
      {"--iters", "--steps", "write --steps N"},
      {"--jobs", "--threads", "write --threads N"},
      {"--learning-rate", "--lr", "write --lr 1e-3"},
      {"--learning_rate", "--lr", "write --lr 1e-3"},
      {"--max-iters", "--steps", "write --steps N"},
      {"--max-steps", "--steps", "write --steps N"},
      {"--max-new-tokens", "--tokens", "write --tokens N"},
      {"--memory", "--memory-limit", "the report shows it: --report; a budget is --memory-limit=40GB"},
      {"--num-workers", "--threads", "write --threads N"},
      {"--optim", "--optimizer", "write --optimizer \"adamw(lr = 1e-3)\""},
      {"--out", "-o", "write -o FILE"},
      {"--out", "--output", "write --output"},
      {"--rtol", "--tolerance", "--tolerance sets the largest relative error"},
      {"--save-every", "--every", "write --every N"},
      {"--workers", "--threads", "write --threads N"},
      {"-V", "", "write --version"},
      {"-e", "--steps", "--steps counts batches: an epoch is the rows of the data by the batch"},
      {"-i", "--input", "write --input NAME=FILE"},
      {"-i", "--stdout", "files are formatted in place without an option"},
      {"-j", "--threads", "write --threads N"},
      {"-n", "--steps", "write --steps N"},
      {"-v", "", "write --version"},
  };
  return kOptions;
}

}  // namespace einc
