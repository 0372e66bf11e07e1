// SPDX-License-Identifier: Apache-2.0
// Arrays of Python's libraries (by the buffer protocol and DLPack) as tensors, and tensors as arrays. Memory is shared, not copied.
#pragma once
#include <einc/runtime.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <string>

namespace einc::python {

namespace nb = nanobind;

// An array to read, whatever library made it. Holds it while it lives.
using ReadArray = nb::ndarray<nb::ro>;

enum class Access : uint8_t { read, write };

// Throws Error (usage), which names `tensor`: no array, not writable where it must be, or of a GPU's memory.
ReadArray array_of(nb::handle object, std::string_view tensor, Access access);

// Throws Error (usage): an element type that einc does not have.
DType dtype_of(const ReadArray& array, std::string_view tensor);
std::vector<int64_t> shape_of(const ReadArray& array);
bool is_row_major(const ReadArray& array);
size_t bytes_of_array(const ReadArray& array);

// numpy's array over the tensor's memory, kept by `owner`; of a dtype that numpy has not, an object that DLPack and the buffer protocol
// read.
nb::object view_of(const TensorView& tensor, nb::handle owner, Access access);
// The same with memory of its own.
nb::object copy_of(const TensorView& tensor);

}  // namespace einc::python
