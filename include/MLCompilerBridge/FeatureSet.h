//===- FeatureSet.h - The features of one request ---------------*- C++ -*-===//
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
/// A FeatureSet is meant to be refilled: from the second round with the same
/// names and sizes on, set() does not allocate.
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

/// The named tensors of one request. Used by one thread at a time.
///
/// **Ownership.** Views (Span, std::span, llvm::ArrayRef, TensorRef,
/// TensorView) are borrowed rather than copied: their data must stay valid
/// until the reply arrives. All other values (scalars, std::string,
/// std::string_view, std::vector, std::array) are copied.
class FeatureSet {
public:
  FeatureSet() = default;
  FeatureSet(FeatureSet &&Other) noexcept;
  FeatureSet &operator=(FeatureSet &&Other) noexcept;
  /// Views into either set stay valid and then belong to the other set.
  void swap(FeatureSet &Other) noexcept;

  /// Sets the feature \p Name, replacing an earlier value. T is an arithmetic
  /// type or bool, a string, a container or view of those, a TensorRef (for
  /// rank 2 and more) or a TensorView.
  ///
  /// An invalid value (a TensorRef whose shape does not fit its data) is
  /// recorded in error(), so code that only populates needs no check.
  template <typename T> void set(std::string_view Name, const T &Value);
  /// Like set() of a TensorView, but copies the data.
  void copy(std::string_view Name, const TensorView &View);

  /// Removes the features but keeps their memory for the next round.
  void clear();

  /// The features in the order they were first set. Valid until the next
  /// set() or clear().
  Span<const TensorView> tensors() const { return {Views.data(), Count}; }
  std::size_t size() const { return Count; }
  bool empty() const { return Count == 0; }
  /// The feature called \p Name, or null.
  const TensorView *find(std::string_view Name) const;
  /// The first invalid value since the last clear(), or success.
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

  /// The index of the slot for \p Name: its existing slot, or the next one.
  std::size_t slot(std::string_view Name);
  /// Returns memory for a copy of the slot's value.
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
  /// Memory for a list of strings, which the caller fills.
  struct StringListFill {
    char *Text;
    std::uint64_t *Lengths;
  };
  StringListFill setStringList(std::string_view Name, std::size_t Count,
                               std::size_t TotalBytes);
  /// Returns memory for \p Count bools, which the caller fills.
  std::uint8_t *setBoolList(std::string_view Name, std::size_t Count);

  std::vector<TensorView> Views;
  /// For each view, the bytes of arena memory at its Data that it may reuse; 0
  /// for borrowed data.
  std::vector<std::size_t> Room;
  /// A deque, because TensorView::Name points into its elements.
  std::deque<std::string> Names;
  std::size_t Count = 0;
  /// True while this round's names repeat the last round's, in its order.
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

/// True for views, whose copies share their elements. Copying a std::array,
/// which is trivially copyable too, copies the elements.
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
