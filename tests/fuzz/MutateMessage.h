//===- MutateMessage.h - Mutates Protobuf messages --------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// mutateMessage() changes Protobuf messages, for fuzzers of handwritten
/// readers. Random bytes would rarely be a message that tests more than the
/// first errors.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_TESTS_FUZZ_MUTATEMESSAGE_H
#define MLBRIDGE_TESTS_FUZZ_MUTATEMESSAGE_H

#include "MLCompilerBridge/Span.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t *Data, std::size_t Size,
                                        std::size_t MaxSize);

namespace MLBridge::fuzz {

/// Values with a meaning for the reader, which are inserted into messages.
struct KnownValues {
  Span<const char *const> Strings;
  Span<const std::int64_t> Numbers;
};

/// Changes one or more fields of a message, preferably to values from the same
/// message.
class MessageMutator {
public:
  MessageMutator(KnownValues Known, unsigned Seed)
      : Known(Known), Random(Seed) {}

  void change(google::protobuf::Message &Root) {
    do
      changeOnce(Root);
    while (below(2) == 0);
  }

private:
  using FieldDescriptor = google::protobuf::FieldDescriptor;
  using Message = google::protobuf::Message;
  using Reflection = google::protobuf::Reflection;

  void changeOnce(Message &Root) {
    Messages.clear();
    Strings.clear();
    Named.clear();
    collect(Root);
    // Change a string in half of the cases, because most fields of a graph are
    // names.
    if (below(2) == 0 && !Named.empty()) {
      auto [M, Field] = Named[below(Named.size())];
      return set(*M, *Field);
    }
    Message &M = *Messages[below(Messages.size())];
    const google::protobuf::Descriptor &Type = *M.GetDescriptor();
    if (Type.field_count() == 0)
      return;
    const FieldDescriptor &Field =
        *Type.field(static_cast<int>(below(std::size_t(Type.field_count()))));
    if (below(2) == 0)
      set(M, Field);
    else
      removeOrSwap(M, Field);
  }

  void removeOrSwap(Message &M, const FieldDescriptor &Field) {
    const Reflection &R = *M.GetReflection();
    const int Count = Field.is_repeated() ? R.FieldSize(M, &Field) : 0;
    if (Count == 0)
      return R.ClearField(&M, &Field);
    const int Element = static_cast<int>(below(std::size_t(Count)));
    const int Other = static_cast<int>(below(std::size_t(Count)));
    R.SwapElements(&M, &Field, Element, Other);
    if (below(2) == 0)
      R.RemoveLast(&M, &Field);
  }

  /// Returns a random number below \p End, or 0 if \p End is 0.
  std::size_t below(std::size_t End) { return End ? Random() % End : 0; }

  void collect(Message &M) {
    Messages.push_back(&M);
    const Reflection &R = *M.GetReflection();
    std::vector<const FieldDescriptor *> Fields;
    R.ListFields(M, &Fields);
    for (const FieldDescriptor *Field : Fields) {
      const bool IsMany = Field->is_repeated();
      const int Count = IsMany ? R.FieldSize(M, Field) : 1;
      for (int I = 0; I < Count; ++I)
        if (Field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
          collect(IsMany ? *R.MutableRepeatedMessage(&M, Field, I)
                         : *R.MutableMessage(&M, Field));
        } else if (Field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
          Strings.push_back(IsMany ? R.GetRepeatedString(M, Field, I)
                                   : R.GetString(M, Field));
          Named.emplace_back(&M, Field);
        }
    }
  }

  /// Sets the field. If the field is repeated, sets or adds one element.
  void set(Message &M, const FieldDescriptor &Field) {
    const Reflection &R = *M.GetReflection();
    const bool IsMany = Field.is_repeated();
    const int Count = IsMany ? R.FieldSize(M, &Field) : 0;
    const int At = static_cast<int>(below(std::size_t(Count) + 1));
    const bool IsNew = At == Count;
    if (Field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      setMessage(M, Field, At, IsNew);
    } else if (Field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      const std::string Text = string();
      if (!IsMany)
        R.SetString(&M, &Field, Text);
      else if (IsNew)
        R.AddString(&M, &Field, Text);
      else
        R.SetRepeatedString(&M, &Field, At, Text);
    } else {
      setNumber(M, Field, At, IsNew);
    }
  }

  /// Sets a number. \p At and \p IsNew are for repeated fields.
  void setNumber(Message &M, const FieldDescriptor &Field, int At, bool IsNew) {
    auto Put = [&](auto Value, auto Set, auto Add, auto SetAt) {
      const Reflection &R = *M.GetReflection();
      if (!Field.is_repeated())
        (R.*Set)(&M, &Field, Value);
      else if (IsNew)
        (R.*Add)(&M, &Field, Value);
      else
        (R.*SetAt)(&M, &Field, At, Value);
    };
    const std::int64_t Value = number();
    switch (Field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64:
      return Put(Value, &Reflection::SetInt64, &Reflection::AddInt64,
                 &Reflection::SetRepeatedInt64);
    case FieldDescriptor::CPPTYPE_BOOL:
      return Put(below(2) == 0, &Reflection::SetBool, &Reflection::AddBool,
                 &Reflection::SetRepeatedBool);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return Put(static_cast<float>(Value), &Reflection::SetFloat,
                 &Reflection::AddFloat, &Reflection::SetRepeatedFloat);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return Put(static_cast<double>(Value), &Reflection::SetDouble,
                 &Reflection::AddDouble, &Reflection::SetRepeatedDouble);
    case FieldDescriptor::CPPTYPE_ENUM:
      return Put(static_cast<int>(Value), &Reflection::SetEnumValue,
                 &Reflection::AddEnumValue, &Reflection::SetRepeatedEnumValue);
    case FieldDescriptor::CPPTYPE_UINT32:
      return Put(static_cast<std::uint32_t>(Value), &Reflection::SetUInt32,
                 &Reflection::AddUInt32, &Reflection::SetRepeatedUInt32);
    case FieldDescriptor::CPPTYPE_UINT64:
      return Put(static_cast<std::uint64_t>(Value), &Reflection::SetUInt64,
                 &Reflection::AddUInt64, &Reflection::SetRepeatedUInt64);
    default:
      return Put(static_cast<std::int32_t>(Value), &Reflection::SetInt32,
                 &Reflection::AddInt32, &Reflection::SetRepeatedInt32);
    }
  }

  void setMessage(Message &M, const FieldDescriptor &Field, int At,
                  bool IsNew) {
    std::vector<const Message *> Alike;
    for (const Message *Other : Messages)
      if (Other->GetDescriptor() == Field.message_type())
        Alike.push_back(Other);
    // Copy the source first, because it may contain the destination.
    std::unique_ptr<Message> Copy;
    if (!Alike.empty()) {
      Copy.reset(Alike.front()->New());
      Copy->CopyFrom(*Alike[below(Alike.size())]);
    }
    const Reflection &R = *M.GetReflection();
    Message &To = !Field.is_repeated() ? *R.MutableMessage(&M, &Field)
                  : IsNew ? *R.AddMessage(&M, &Field)
                          : *R.MutableRepeatedMessage(&M, &Field, At);
    if (Copy)
      To.CopyFrom(*Copy);
  }

  std::string string() {
    const std::size_t Choice = below(Strings.size() + Known.Strings.size());
    return Choice < Strings.size() ? Strings[Choice]
                                   : Known.Strings[Choice - Strings.size()];
  }
  std::int64_t number() { return Known.Numbers[below(Known.Numbers.size())]; }

  KnownValues Known;
  std::minstd_rand Random;
  std::vector<Message *> Messages;
  std::vector<std::pair<Message *, const FieldDescriptor *>> Named;
  std::vector<std::string> Strings;
};

/// For LLVMFuzzerCustomMutator(): usually mutates the message in \p Data, and
/// sometimes mutates its bytes.
template <typename MessageT>
std::size_t mutateMessage(KnownValues Known, std::uint8_t *Data,
                          std::size_t Size, std::size_t MaxSize,
                          unsigned Seed) {
  MessageT Root;
  if (Seed % 4 != 0 && Root.ParseFromArray(Data, static_cast<int>(Size))) {
    MessageMutator(Known, Seed).change(Root);
    std::string Changed;
    if (Root.SerializeToString(&Changed) && Changed.size() <= MaxSize) {
      std::ranges::copy(Changed, Data);
      return Changed.size();
    }
  }
  return LLVMFuzzerMutate(Data, Size, MaxSize);
}

} // namespace MLBridge::fuzz

#endif // MLBRIDGE_TESTS_FUZZ_MUTATEMESSAGE_H
