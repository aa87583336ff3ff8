//===- FeatureSet.h - What a compiler tells a model -------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// FeatureSet: the named tensors of one request, in the order they were set.
/// The model side builds its replies with it too.
///
/// It is made to be refilled: after the first round with the same names no
/// set() allocates.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_FEATURESET_H
#define MLCOMPILERBRIDGE_FEATURESET_H

#include "MLCompilerBridge/Error.h"
#include "MLCompilerBridge/Tensor.h"

#include <deque>
#include <memory>
#include <vector>

namespace MLBridge {

/// Named tensors, ready to be asked about. Used by one thread at a time.
///
/// **Who owns the data.** Views (Span, std::span, llvm::ArrayRef, TensorRef,
/// TensorView) are borrowed: what they point at must stay valid until the
/// request has been answered, which is what makes them free. Everything else
/// (scalars, std::string, std::string_view, std::vector, std::array) is
/// copied.
class FeatureSet {
public:
  FeatureSet() = default;
  FeatureSet(FeatureSet &&Other) noexcept;
  FeatureSet &operator=(FeatureSet &&Other) noexcept;
  /// Views into either stay valid, and are then the other's.
  void swap(FeatureSet &Other) noexcept;

  /// Sets the feature \p Name; a name that is there already is replaced. T is
  /// an arithmetic type or bool, a string, a container or view of those, a
  /// TensorRef (for rank 2 and more) or a TensorView.
  ///
  /// A wrong value (a TensorRef whose shape does not fit its data) is kept as
  /// error(), so that code that only populates needs no check.
  template <typename T> void set(std::string_view Name, const T &Value);
  /// As set() of a TensorView, but what it views is copied.
  void copy(std::string_view Name, const TensorView &View);

  /// Forgets the features, and keeps their memory for the next round.
  void clear();

  /// The features in the order they were first set. Valid until the next
  /// set() or clear().
  Span<const TensorView> tensors() const { return {Views.data(), Count}; }
  std::size_t size() const { return Count; }
  bool empty() const { return Count == 0; }
  /// The feature of that name, or null.
  const TensorView *find(std::string_view Name) const;
  /// The first misuse since the last clear().
  const Error &error() const { return FirstError; }

private:
  /// A bump allocator whose blocks never move, so that views stay valid.
  class Arena {
  public:
    void *allocate(std::size_t NumBytes, std::size_t Alignment);
    void reset();

  private:
    struct Block {
      std::unique_ptr<std::byte[]> Memory;
      std::size_t Size = 0;
    };
    std::vector<Block> Blocks;
    std::size_t Used = 0;
  };

  /// The index of the slot for \p Name: the next one, or the one that has the
  /// name already.
  std::size_t slot(std::string_view Name);
  /// Memory for a copy of the slot's value.
  void *makeRoom(std::size_t Slot, std::size_t NumBytes, std::size_t Alignment);
  void store(std::size_t Slot, ElementType Type, const Shape &Dims,
             const void *Data, std::size_t NumBytes,
             Span<const std::uint64_t> Lengths = {});
  void fail(std::string_view Name, const std::string &Why);
  void setScalar(std::string_view Name, ElementType Type, const void *Value);
  void setDense(std::string_view Name, ElementType Type, const Shape &Dims,
                const void *Data, std::size_t Elements, bool Borrow);
  void setString(std::string_view Name, std::string_view Value);
  void setView(std::string_view Name, const TensorView &View);
  /// Makes room for a list of strings; the caller fills it.
  struct StringListFill {
    char *Text;
    std::uint64_t *Lengths;
  };
  StringListFill setStringList(std::string_view Name, std::size_t Count,
                               std::size_t TotalBytes);
  /// Makes room for \p Count bools; the caller fills it.
  std::uint8_t *setBoolList(std::string_view Name, std::size_t Count);

  std::vector<TensorView> Views;
  /// For each view the bytes at its Data that are in the arena and its own; 0
  /// where they are borrowed.
  std::vector<std::size_t> Room;
  /// A deque, since TensorView::Name points into it.
  std::deque<std::string> Names;
  std::size_t Count = 0;
  /// Whether this round's names so far are the last round's, in its order.
  bool SameNames = true;
  Arena Storage;
  Error FirstError;
};

namespace detail {

template <typename T> struct IsTensorRef : std::false_type {};
template <typename T> struct IsTensorRef<TensorRef<T>> : std::true_type {};

template <typename T, typename = void> struct ElementOf {
  using type = void;
};
template <typename T>
struct ElementOf<T, std::void_t<decltype(std::declval<const T &>().data()),
                                decltype(std::declval<const T &>().size())>> {
  using type = std::remove_cv_t<
      std::remove_pointer_t<decltype(std::declval<const T &>().data())>>;
};

template <typename T, typename = void> struct HasTupleSize : std::false_type {};
template <typename T>
struct HasTupleSize<T, std::void_t<decltype(std::tuple_size<T>::value)>>
    : std::true_type {};

/// A view can be told from a container: copying it copies no elements. (An
/// std::array is trivially copyable too, but copying it does copy them.)
template <typename T>
inline constexpr bool IsView =
    std::is_trivially_copyable_v<T> && !HasTupleSize<T>::value;

} // namespace detail

template <typename T>
void FeatureSet::set(std::string_view Name, const T &Value) {
  using Element = typename detail::ElementOf<T>::type;
  if constexpr (std::is_same_v<T, TensorView>) {
    setView(Name, Value);
  } else if constexpr (detail::IsTensorRef<T>::value) {
    using E = std::remove_cv_t<
        std::remove_reference_t<decltype(*Value.Elements.data())>>;
    setDense(Name, *elementTypeOf<E>(), Value.Dims, Value.Elements.data(),
             Value.Elements.size(), /*Borrow=*/true);
  } else if constexpr (std::is_convertible_v<const T &, std::string_view>) {
    setString(Name, Value);
  } else if constexpr (IsElement<T>) {
    setScalar(Name, *elementTypeOf<T>(), &Value);
  } else if constexpr (std::is_array_v<T>) {
    using E = std::remove_extent_t<T>;
    if constexpr (IsElement<E>)
      setDense(Name, *elementTypeOf<E>(), {std::int64_t(std::extent_v<T>)},
               Value, std::extent_v<T>, /*Borrow=*/false);
    else
      set(Name, Span<const E>(Value));
  } else if constexpr (IsElement<Element>) {
    setDense(Name, *elementTypeOf<Element>(),
             {static_cast<std::int64_t>(Value.size())}, Value.data(),
             Value.size(), detail::IsView<T>);
  } else if constexpr (std::is_same_v<T, std::vector<bool>>) {
    std::uint8_t *Out = setBoolList(Name, Value.size());
    for (bool B : Value)
      *Out++ = B;
  } else {
    static_assert(std::is_convertible_v<const Element &, std::string_view>,
                  "a feature is a number, a bool, a string, or a container of "
                  "one of those");
    std::size_t Total = 0;
    for (std::string_view S : Value)
      Total += S.size();
    StringListFill Fill = setStringList(Name, Value.size(), Total);
    for (std::string_view S : Value) {
      Fill.Text += S.copy(Fill.Text, S.size());
      *Fill.Lengths++ = S.size();
    }
  }
}

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_FEATURESET_H
