//===- YAMLSerDes.cpp - Tensors as YAML -----------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A message is a mapping from names to tensors. The value of a long tensor is
/// its bytes in hexadecimal, because people do not read a thousand numbers:
///
///   "callee": {type: string, value: "main"}
///   "embedding": {type: float, value: [0.5, .inf, -1.5], shape: [3]}
///   "weights": {type: float, value: "0000803F0000...", shape: [1000]}
///
//===----------------------------------------------------------------------===//

#include "YAMLSerDes.h"
#include "MLCompilerBridge/SerDes/MessageCheck.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <deque>
#include <span>
#include <yaml.h>

using namespace MLBridge;

static constexpr std::size_t MostNumbers = 64;
static constexpr auto Plain = YAML_PLAIN_SCALAR_STYLE;
static constexpr auto Quoted = YAML_DOUBLE_QUOTED_SCALAR_STYLE;
static constexpr std::string_view Digits = "0123456789ABCDEF";

/// Calls \p Do with a zero. The type of the zero is the type that represents
/// numbers of \p Type in text.
template <typename F> static auto asText(ElementType Type, F Do) {
  if (Type == ElementType::Float || Type == ElementType::Double)
    return Do(double());
  return Type == ElementType::UInt64 ? Do(std::uint64_t()) : Do(std::int64_t());
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

template <typename T> static std::string toText(T Number) {
  char Shortest[32]; // Enough for the shortest exact form of any number.
  std::string Text(Shortest,
                   std::to_chars(Shortest, Shortest + 32, Number).ptr);
  // // Insert a dot, because YAML has the forms .inf and .nan.
  if (std::size_t Letter = Text.find_first_of("in"); Letter != Text.npos)
    Text.insert(Letter, ".");
  return Text;
}

/// Returns each element of \p Tensor as text.
static std::vector<std::string> textsOf(const TensorView &Tensor) {
  std::vector<std::string> Texts;
  if (Tensor.Type == ElementType::String)
    return Tensor.isStringList()
               ? *Advice({&Tensor, 1}).get<std::vector<std::string>>()
               : std::vector<std::string>{std::string(Tensor.text())};
  asText(Tensor.Type, [&](auto Zero) {
    auto Numbers = Advice({&Tensor, 1}).get<std::vector<decltype(Zero)>>();
    std::ranges::transform(*Numbers, std::back_inserter(Texts),
                           toText<decltype(Zero)>);
  });
  return Texts;
}

namespace {

/// Builds a document. If memory runs out, libyaml returns node 0. Later calls
/// reject this node.
class Writer {
public:
  Writer() {
    IsGood = yaml_document_initialize(&YAML, nullptr, nullptr, nullptr, 1, 1);
  }
  ~Writer() { yaml_document_delete(&YAML); }

  bool write(Span<const TensorView> Features, std::string &Out) {
    int Root = mapping(YAML_BLOCK_MAPPING_STYLE);
    for (const TensorView &Feature : Features)
      pair(Root, scalar(Feature.Name, Quoted), tensor(Feature));
    auto Append = [](void *To, unsigned char *Bytes, std::size_t Size) {
      static_cast<std::string *>(To)->append(Bytes, Bytes + Size);
      return 1;
    };
    Out.clear();
    yaml_emitter_t Emitter;
    IsGood = yaml_emitter_initialize(&Emitter) && IsGood;
    yaml_emitter_set_output(&Emitter, Append, &Out);
    yaml_emitter_set_width(&Emitter, -1);
    yaml_emitter_set_unicode(&Emitter, 1);
    // The emitter takes ownership of the document.
    IsGood = IsGood && yaml_emitter_dump(&Emitter, &YAML) &&
             yaml_emitter_close(&Emitter);
    yaml_emitter_delete(&Emitter);
    return IsGood;
  }

private:
  int scalar(std::string_view Text, yaml_scalar_style_t Style = Plain) {
    return yaml_document_add_scalar(
        &YAML, nullptr, (const yaml_char_t *)(Text.empty() ? "" : Text.data()),
        static_cast<int>(Text.size()), Style);
  }
  int mapping(yaml_mapping_style_t Style) {
    return yaml_document_add_mapping(&YAML, nullptr, Style);
  }
  void pair(int Mapping, int Key, int Value) {
    IsGood = IsGood && Mapping && Key && Value &&
             yaml_document_append_mapping_pair(&YAML, Mapping, Key, Value);
  }
  int list(const TensorView &Tensor, yaml_scalar_style_t Style) {
    int List =
        yaml_document_add_sequence(&YAML, nullptr, YAML_FLOW_SEQUENCE_STYLE);
    for (const std::string &Text : textsOf(Tensor)) {
      int Item = scalar(Text, Style);
      IsGood = IsGood && List && Item &&
               yaml_document_append_sequence_item(&YAML, List, Item);
    }
    return List;
  }
  int tensor(const TensorView &Tensor) {
    const auto Style = Tensor.Type == ElementType::String ? Quoted : Plain;
    int Mapping = mapping(YAML_FLOW_MAPPING_STYLE);
    pair(Mapping, scalar("type"), scalar(elementTypeName(Tensor.Type)));
    if (Tensor.Dims.isScalar()) {
      pair(Mapping, scalar("value"), scalar(textsOf(Tensor)[0], Style));
      return Mapping;
    }
    const Shape &Dims = Tensor.Dims;
    std::int64_t Rank = static_cast<std::int64_t>(Dims.rank());
    pair(
        Mapping, scalar("shape"),
        list(
            {"", ElementType::Int64, {Rank}, Dims.begin(), 8 * Dims.rank(), {}},
            Plain));
    std::string Hex;
    if (Style == Plain && Tensor.numElements() > MostNumbers)
      for (std::byte B : Tensor.bytes())
        (Hex += Digits[std::size_t(B) >> 4]) += Digits[std::size_t(B) & 15];
    pair(Mapping, scalar("value"),
         Hex.empty() ? list(Tensor, Style) : scalar(Hex, Quoted));
    return Mapping;
  }

  yaml_document_t YAML;
  bool IsGood;
};

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// A parsed message. Its tensors are valid while this object exists.
class Reader {
public:
  ~Reader() { yaml_document_delete(&YAML); }

  Error read(Span<const std::byte> Message) {
    yaml_parser_t Parser;
    bool IsGood = yaml_parser_initialize(&Parser);
    yaml_parser_set_encoding(&Parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&Parser, (const yaml_char_t *)Message.data(),
                                 Message.size());
    IsGood = IsGood && yaml_parser_load(&Parser, &YAML);
    std::string Why = Parser.problem ? Parser.problem : "something else";
    yaml_parser_delete(&Parser);
    const yaml_node_t *Root =
        IsGood ? yaml_document_get_root_node(&YAML) : nullptr;
    if (!Root || Root->type != YAML_MAPPING_NODE)
      return malformed("expected a mapping of names to tensors, found: " + Why);
    const auto &Pairs = Root->data.mapping.pairs;
    for (auto *P = Pairs.start; P != Pairs.top; ++P) {
      auto Name = text(node(P->key));
      if (!Name || !readTensor(*Name, node(P->value)))
        return malformed("feature '" +
                         std::string(Name.value_or("?").substr(0, 64)) +
                         "': expected {type: ..., value: ..., shape: [...]}");
    }
    return Error::success();
  }
  Span<const TensorView> tensors() const { return Views; }

private:
  static Error malformed(const std::string &What) {
    return {ErrorCode::Malformed, "YAML message: " + What};
  }
  const yaml_node_t *node(int Index) {
    return yaml_document_get_node(&YAML, Index);
  }
  static std::optional<std::string_view> text(const yaml_node_t *Node) {
    if (!Node || Node->type != YAML_SCALAR_NODE)
      return std::nullopt;
    return std::string_view((const char *)Node->data.scalar.value,
                            Node->data.scalar.length);
  }
  const yaml_node_t *find(const yaml_node_t *Mapping, std::string_view Key) {
    const auto &Pairs = Mapping->data.mapping.pairs;
    for (auto *P = Pairs.start; P != Pairs.top; ++P)
      if (text(node(P->key)) == Key)
        return node(P->value);
    return nullptr;
  }
  /// True if \p List is a list and \p Do accepts each of its items.
  template <typename F> bool all(const yaml_node_t *List, F Do) {
    if (!List || List->type != YAML_SEQUENCE_NODE)
      return false;
    const auto &Items = List->data.sequence.items;
    return std::all_of(Items.start, Items.top, [&](int Item) {
      auto Text = text(node(Item));
      return Text && Do(*Text);
    });
  }
  bool readTensor(std::string_view Name, const yaml_node_t *Tensor) {
    if (!Tensor || Tensor->type != YAML_MAPPING_NODE)
      return false;
    auto Type = parseElementType(text(find(Tensor, "type")).value_or(""));
    const yaml_node_t *Value = find(Tensor, "value");
    const yaml_node_t *Extents = find(Tensor, "shape");
    TensorView View{Name, Type.value_or(ElementType::Bool), {}, nullptr, 0, {}};
    auto AddExtent = [&](std::string_view Text) {
      std::int64_t Extent = 0;
      return parse(std::string(Text), Extent) && View.Dims.push(Extent);
    };
    if (!Type || (Extents && !all(Extents, AddExtent)))
      return false;
    auto &Bytes = Elements.emplace_back();
    auto &Each = Lengths.emplace_back();
    auto Add = [&](std::string_view Text) {
      if (Extents && *Type == ElementType::String)
        Each.push_back(Text.size());
      return addElement(*Type, Text, Bytes);
    };
    auto Text = text(Value);
    if (!(Extents && !Text ? all(Value, Add)
          : Extents        ? addHex(*Text, Bytes)
                           : Text && Add(*Text)))
      return false;
    View.Data = Bytes.data();
    View.NumBytes = Bytes.size();
    View.Lengths = Each;
    Views.push_back(View);
    return true;
  }
  static bool addElement(ElementType Type, std::string_view Text,
                         std::vector<std::byte> &To) {
    const auto *First = (const std::byte *)Text.data();
    if (Type == ElementType::String)
      return To.insert(To.end(), First, First + Text.size()), true;
    To.resize(To.size() + elementSize(Type));
    return asText(Type, [&](auto Number) {
      using T = decltype(Number);
      TensorView View{"", *elementTypeOf<T>(), {}, &Number, sizeof(T), {}};
      return parse(std::string(Text), Number) &&
             !detail::convertElements(View, Type,
                                      &*To.end() - elementSize(Type));
    });
  }
  static bool addHex(std::string_view Text, std::vector<std::byte> &To) {
    for (; Text.size() > 1; Text.remove_prefix(2)) {
      std::size_t High = Digits.find(Text[0]), Low = Digits.find(Text[1]);
      if ((High | Low) > 15)
        return false;
      To.push_back(std::byte(High << 4 | Low));
    }
    return Text.empty();
  }
  template <typename T> static bool parse(std::string Text, T &Value) {
    // Remove the dot of YAML's .inf and .nan, because from_chars() expects no
    // dot.
    std::size_t Letter = Text.find_first_of("in");
    if (Letter - 1 < Text.size() && Text[Letter - 1] == '.')
      Text.erase(Letter - 1, 1);
    const char *End = Text.data() + Text.size();
    auto [Last, Failure] = std::from_chars(Text.data(), End, Value);
    return Failure == std::errc() && Last == End;
  }

  yaml_document_t YAML = {};
  // Use deques, because their elements never move.
  std::deque<std::vector<std::byte>> Elements;
  std::deque<std::vector<std::uint64_t>> Lengths;
  std::vector<TensorView> Views;
};

class YAMLSerDes final : public BaseSerDes {
public:
  std::string_view name() const override { return "yaml"; }
  std::shared_ptr<const void> memory() const override { return Received; }

  Expected<std::size_t> getMaxSerializedSize() override {
    if (Error E = CheckOut(Features, ErrorCode::InvalidArgument))
      return E;
    if (!Writer().write(Features, Text))
      return Error(ErrorCode::InvalidArgument,
                   "libyaml cannot write this message");
    return Text.size();
  }
  Expected<std::size_t> getSerializedData(Span<std::byte> Out) override {
    if (Out.size() < Text.size())
      return Error(ErrorCode::InvalidArgument, "the region is too small");
    std::memcpy(Out.data(), Text.data(), Text.size());
    return Text.size();
  }

protected:
  Expected<Span<const TensorView>>
  deserializeUntyped(Span<const std::byte> Message,
                     const AdviceSpec &) override {
    Received = std::make_shared<Reader>();
    Error E = Received->read(Message);
    if (!E)
      E = CheckIn(Received->tensors(), ErrorCode::Malformed);
    if (E)
      return E;
    return Received->tensors();
  }

private:
  std::string Text;
  std::shared_ptr<Reader> Received;
  MessageCheck CheckOut, CheckIn;
};

} // namespace

void MLBridge::addYAML(SerDesFactory &Formats) {
  Formats.add<YAMLSerDes>("yaml", "readable text with a line for each tensor");
}
