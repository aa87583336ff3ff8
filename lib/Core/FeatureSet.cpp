//===- FeatureSet.cpp - The features of one request -----------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Stores features: the views are in a vector, the names in a deque and copied
/// data in an arena. All three keep their memory for the next request.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/FeatureSet.h"

#include "Core/TensorForm.h"
#include "Support/PrintableText.h"

#include <algorithm>
#include <cstring>

using namespace MLBridge;
using detail::contradiction;
using detail::misfit;

/// The alignment of tensors. Vector instructions of in-process models need it.
static constexpr std::size_t DenseAlignment = 64;
static constexpr std::size_t ScalarAlignment = 8;

/// The data of empty tensors. Their pointer is not null, so that callers of
/// memcpy need not check for null.
alignas(DenseAlignment) static constexpr std::byte Nothing[DenseAlignment] = {};

//===----------------------------------------------------------------------===//
// The arena
//===----------------------------------------------------------------------===//

static std::size_t paddingFor(const std::byte *At, std::size_t Alignment) {
  return -reinterpret_cast<std::uintptr_t>(At) & (Alignment - 1);
}

void *FeatureSet::Arena::allocate(std::size_t NumBytes, std::size_t Alignment) {
  if (!Blocks.empty()) {
    Block &Last = Blocks.back();
    std::size_t Start = Used + paddingFor(Last.Memory.get() + Used, Alignment);
    if (Start <= Last.Size && NumBytes <= Last.Size - Start) {
      Used = Start + NumBytes;
      return Last.Memory.get() + Start;
    }
  }
  constexpr std::size_t SmallestBlock = 1024;
  std::size_t Size = NumBytes + Alignment;
  Size = std::max(
      {Size, SmallestBlock, Blocks.empty() ? 0 : 2 * Blocks.back().Size});
  Blocks.push_back({std::make_unique_for_overwrite<std::byte[]>(Size), Size});
  std::byte *Memory = Blocks.back().Memory.get();
  std::size_t Start = paddingFor(Memory, Alignment);
  Used = Start + NumBytes;
  return Memory + Start;
}

void FeatureSet::Arena::reset() {
  Used = 0;
  if (Blocks.size() <= 1)
    return;
  // Replace the blocks by one block of their total size, so that the next
  // request of this size fits into one block.
  std::size_t Total = 0;
  for (const Block &B : Blocks)
    Total += B.Size;
  Blocks.clear();
  Blocks.push_back({std::make_unique_for_overwrite<std::byte[]>(Total), Total});
}

//===----------------------------------------------------------------------===//
// Names and slots
//===----------------------------------------------------------------------===//

FeatureSet::FeatureSet(FeatureSet &&Other) noexcept : FeatureSet() {
  swap(Other);
}

FeatureSet &FeatureSet::operator=(FeatureSet &&Other) noexcept {
  swap(Other);
  Other.clear();
  return *this;
}

void FeatureSet::swap(FeatureSet &Other) noexcept {
  // TensorView::Name stays valid, because std::swap does not move the elements
  // of a deque.
  std::swap(Views, Other.Views);
  std::swap(Room, Other.Room);
  std::swap(Names, Other.Names);
  std::swap(Count, Other.Count);
  std::swap(SameNames, Other.SameNames);
  std::swap(Storage, Other.Storage);
  std::swap(FirstError, Other.FirstError);
}

void FeatureSet::clear() {
  // Remove the remaining names of earlier requests, because they may be
  // duplicates of this request's names.
  if (!SameNames)
    Names.resize(Count);
  SameNames = true;
  Count = 0;
  Storage.reset();
  FirstError = Error::success();
}

const TensorView *FeatureSet::find(std::string_view Name) const {
  for (const TensorView &View : tensors())
    if (View.Name == Name)
      return &View;
  return nullptr;
}

std::size_t FeatureSet::slot(std::string_view Name) {
  // Skip the search while the names match the names of the previous request in
  // the same order. In this case, \p Name cannot have been set yet, because the
  // names of a request are distinct.
  bool IsExpected = Count < Names.size() && Names[Count] == Name;
  if (!(SameNames && IsExpected)) {
    if (const TensorView *Existing = find(Name))
      return static_cast<std::size_t>(Existing - Views.data());
    if (Count == Names.size()) {
      Names.emplace_back(Name);
    } else {
      Names[Count] = Name;
      SameNames = false;
    }
  }
  if (Count == Views.size()) {
    Views.emplace_back();
    Room.emplace_back();
  }
  Room[Count] = 0;
  return Count++;
}

void *FeatureSet::makeRoom(std::size_t Slot, std::size_t NumBytes,
                           std::size_t Alignment) {
  NumBytes = std::max<std::size_t>(NumBytes, 1);
  // If the feature has already been set for this request, reuse its memory.
  // Otherwise, each repeated set() would allocate more memory.
  auto *Old = static_cast<std::byte *>(const_cast<void *>(Views[Slot].Data));
  if (NumBytes <= Room[Slot] && paddingFor(Old, Alignment) == 0)
    return Old;
  Room[Slot] = NumBytes;
  return Storage.allocate(NumBytes, Alignment);
}

void FeatureSet::store(std::size_t Slot, ElementType Type, const Shape &Dims,
                       const void *Data, std::size_t NumBytes,
                       Span<const std::uint64_t> Lengths) {
  TensorView &View = Views[Slot];
  View.Name = Names[Slot];
  View.Type = Type;
  View.Dims = Dims;
  View.Data = Data ? Data : Nothing;
  View.NumBytes = NumBytes;
  View.Lengths = Lengths;
}

void FeatureSet::fail(std::string_view Name, const std::string &Why) {
  if (!FirstError)
    FirstError = {ErrorCode::InvalidArgument,
                  "feature '" + printable(Name) + "': " + Why};
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

void FeatureSet::setScalar(std::string_view Name, ElementType Type,
                           const void *Value) {
  std::size_t Slot = slot(Name);
  std::size_t NumBytes = elementSize(Type);
  void *Copy = makeRoom(Slot, NumBytes, ScalarAlignment);
  std::memcpy(Copy, Value, NumBytes);
  store(Slot, Type, {}, Copy, NumBytes);
}

void FeatureSet::setDense(std::string_view Name, ElementType Type,
                          const Shape &Dims, const void *Data,
                          std::size_t Elements, bool Borrow) {
  if (std::string Why = misfit(Dims, Elements); !Why.empty())
    return fail(Name, Why);
  if (!Data && Elements != 0)
    return fail(Name, std::to_string(Elements) + " elements at a null pointer");
  std::size_t Slot = slot(Name);
  std::size_t NumBytes = Elements * elementSize(Type);
  if (!Borrow) {
    void *Copy = makeRoom(Slot, NumBytes, DenseAlignment);
    if (NumBytes != 0)
      std::memmove(Copy, Data, NumBytes);
    Data = Copy;
  } else {
    Room[Slot] = 0;
  }
  store(Slot, Type, Dims, Data, NumBytes);
}

void FeatureSet::setString(std::string_view Name, std::string_view Value) {
  std::size_t Slot = slot(Name);
  void *Copy = makeRoom(Slot, Value.size(), 1);
  if (!Value.empty())
    std::memmove(Copy, Value.data(), Value.size());
  store(Slot, ElementType::String, {}, Copy, Value.size());
}

void FeatureSet::setView(std::string_view Name, const TensorView &View) {
  if (std::string Why = contradiction(View); !Why.empty())
    return fail(Name, Why);
  // Copy View first: it may be an element of Views, which slot() may move.
  TensorView V = View;
  std::size_t Slot = slot(Name);
  Room[Slot] = 0;
  store(Slot, V.Type, V.Dims, V.Data, V.NumBytes, V.Lengths);
}

void FeatureSet::copy(std::string_view Name, const TensorView &View) {
  if (std::string Why = contradiction(View); !Why.empty())
    return fail(Name, Why);
  // Copy View first: it may be an element of Views, which slot() may move.
  const TensorView V = View;
  if (V.isStringList()) {
    StringListFill Fill = setStringList(Name, V.Lengths.size(), V.NumBytes);
    std::ranges::copy(V.Lengths, Fill.Lengths);
    if (V.NumBytes != 0)
      std::memcpy(Fill.Text, V.Data, V.NumBytes);
    return;
  }
  std::size_t Slot = slot(Name);
  void *Copy = makeRoom(Slot, V.NumBytes,
                        V.Dims.isScalar() ? ScalarAlignment : DenseAlignment);
  if (V.NumBytes != 0)
    std::memmove(Copy, V.Data, V.NumBytes);
  store(Slot, V.Type, V.Dims, Copy, V.NumBytes);
}

FeatureSet::StringListFill FeatureSet::setStringList(std::string_view Name,
                                                     std::size_t Count,
                                                     std::size_t TotalBytes) {
  std::size_t Slot = slot(Name);
  // Do not reuse this memory for another value, because Data does not point to
  // its start.
  Room[Slot] = 0;
  std::size_t LengthBytes = Count * sizeof(std::uint64_t);
  auto *Memory = static_cast<std::byte *>(Storage.allocate(
      LengthBytes + std::max<std::size_t>(TotalBytes, 1), ScalarAlignment));
  auto *Lengths = reinterpret_cast<std::uint64_t *>(Memory);
  char *Text = reinterpret_cast<char *>(Memory + LengthBytes);
  store(Slot, ElementType::String, {static_cast<std::int64_t>(Count)}, Text,
        TotalBytes, {Lengths, Count});
  return {Text, Lengths};
}

std::uint8_t *FeatureSet::setBoolList(std::string_view Name,
                                      std::size_t Count) {
  std::size_t Slot = slot(Name);
  void *Memory = makeRoom(Slot, Count, DenseAlignment);
  store(Slot, ElementType::Bool, {static_cast<std::int64_t>(Count)}, Memory,
        Count);
  return static_cast<std::uint8_t *>(Memory);
}
