//===- FeatureSet.h - The features of one request ---------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines FeatureSet, the named tensors of one request in the order in which
/// they were set. The model side also builds its replies as a FeatureSet.
///
/// Reuse one FeatureSet for many requests: clear it and set the features again.
/// If the names and sizes are the same as before, set() allocates no memory.
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

/// The named tensors of one request. Only one thread at a time may use a
/// FeatureSet.
///
/// **Ownership.** Views (Span, std::span, llvm::ArrayRef, TensorRef,
/// TensorView) are borrowed, not copied. Therefore, their data must stay valid
/// until the reply arrives. All other values (scalars, std::string,
/// std::string_view, std::vector, std::array) are copied.
class FeatureSet {
public:
  FeatureSet() = default;
  FeatureSet(FeatureSet &&Other) noexcept;
  FeatureSet &operator=(FeatureSet &&Other) noexcept;
  /// Exchanges the features of the two sets. Views of the features stay valid.
  void swap(FeatureSet &Other) noexcept;

  /// Sets the feature \p Name and replaces an earlier value. T is a number, a
  /// bool, a string, a container or view of numbers, bools or strings, a
  /// TensorRef (for rank 2 and more) or a TensorView.
  ///
  /// If a value is invalid, for example a TensorRef whose shape does not fit
  /// its data, error() returns the reason. Code that sets features need not
  /// check error(), because the runner checks it.
  template <typename T> void set(std::string_view Name, const T &Value);
  /// Sets the feature \p Name to a copy of \p View. In contrast, set() borrows
  /// the data of a TensorView.
  void copy(std::string_view Name, const TensorView &View);

  /// Removes the features but keeps their memory for the next request.
  void clear();

  /// Returns the features in the order in which they were first set. The result
  /// is valid until the next set() or clear().
  Span<const TensorView> tensors() const { return {Views.data(), Count}; }
  std::size_t size() const { return Count; }
  bool empty() const { return Count == 0; }
  /// Returns the feature called \p Name, or null if there is no such feature.
  const TensorView *find(std::string_view Name) const;
  /// Returns the error of the first invalid value since the last clear().
  /// Returns success if all values were valid.
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

  /// Returns an index in Views. If a feature has the name \p Name, this is its
  /// index. Otherwise, it is the index of a new feature.
  std::size_t slot(std::string_view Name);
  /// Returns memory for a copy of the value of the feature at index \p Slot.
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
  /// The memory of a list of strings. The caller writes the text and the
  /// lengths.
  struct StringListFill {
    char *Text;
    std::uint64_t *Lengths;
  };
  StringListFill setStringList(std::string_view Name, std::size_t Count,
                               std::size_t TotalBytes);
  /// Returns memory for \p Count bools. The caller writes the bools.
  std::uint8_t *setBoolList(std::string_view Name, std::size_t Count);

  std::vector<TensorView> Views;
  /// For each view, the size in bytes of its memory in the arena, or 0 if its
  /// data is borrowed. A new value of at most this size reuses the memory.
  std::vector<std::size_t> Room;
  /// A deque, because TensorView::Name points into its elements.
  std::deque<std::string> Names;
  std::size_t Count = 0;
  /// True while the names that have been set since clear() match the names of
  /// the previous request, in the same order.
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

/// True if T is a view, that is, if a copy of a T refers to the same elements.
/// A view is trivially copyable. A std::array is trivially copyable too, but a
/// copy of it has its own elements.
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
