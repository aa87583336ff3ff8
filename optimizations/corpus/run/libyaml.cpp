// Emits, scans, parses, loads and damages YAML documents with libyaml. The program's
// argument is the number of rounds.
#include "driver.h"
#include <yaml.h>

#include <cstdlib>
#include <cstring>
#include <functional>

static std::string asText(const yaml_char_t *Text) {
  return Text != nullptr ? reinterpret_cast<const char *>(Text) : "none";
}

static const yaml_char_t *asYaml(const std::string &Text) {
  return reinterpret_cast<const yaml_char_t *>(Text.c_str());
}

static std::string_view view(const yaml_char_t *Text, size_t Size) {
  return {reinterpret_cast<const char *>(Text), Size};
}

static int append(void *Into, unsigned char *Bytes, size_t Size) {
  static_cast<std::string *>(Into)->append(view(Bytes, Size));
  return 1;
}

// A text that a parser reads in small parts.
struct Source {
  const std::string &Text;
  size_t At = 0;

  static int read(void *From, unsigned char *Into, size_t Most, size_t *Size) {
    auto &Self = *static_cast<Source *>(From);
    *Size = Self.Text.copy(reinterpret_cast<char *>(Into),
                           Most < 1000 ? Most : 1000, Self.At);
    Self.At += *Size;
    return 1;
  }
};

static void addError(const yaml_parser_t &Parser, Checksum &Sum) {
  Sum.add(static_cast<int>(Parser.error));
  Sum.add(Parser.problem != nullptr ? Parser.problem : "no problem");
  Sum.add(Parser.context != nullptr ? Parser.context : "no context");
  Sum.add(static_cast<uint64_t>(Parser.problem_mark.line * 1000 +
                                Parser.problem_mark.column));
}

static void addToken(const yaml_token_t &Token, Checksum &Sum) {
  Sum.add(static_cast<int>(Token.type));
  Sum.add(static_cast<uint64_t>(Token.start_mark.line * 1000 +
                                Token.end_mark.column));
  if (Token.type == YAML_SCALAR_TOKEN)
    Sum.add(view(Token.data.scalar.value, Token.data.scalar.length));
  if (Token.type == YAML_TAG_TOKEN)
    Sum.add(asText(Token.data.tag.handle) + asText(Token.data.tag.suffix));
}

static void addEvent(const yaml_event_t &Event, Checksum &Sum) {
  Sum.add(static_cast<int>(Event.type));
  if (Event.type == YAML_SCALAR_EVENT) {
    Sum.add(view(Event.data.scalar.value, Event.data.scalar.length));
    Sum.add(asText(Event.data.scalar.tag) + asText(Event.data.scalar.anchor));
    Sum.add(static_cast<int>(Event.data.scalar.style));
  }
  if (Event.type == YAML_ALIAS_EVENT)
    Sum.add(asText(Event.data.alias.anchor));
}

static void scan(const std::string &Text, Checksum &Sum) {
  yaml_parser_t Parser;
  yaml_parser_initialize(&Parser);
  yaml_parser_set_input_string(&Parser, asYaml(Text), Text.size());
  for (bool IsEnd = false; !IsEnd;) {
    yaml_token_t Token;
    if (yaml_parser_scan(&Parser, &Token) == 0) {
      addError(Parser, Sum);
      break;
    }
    addToken(Token, Sum);
    IsEnd = Token.type == YAML_STREAM_END_TOKEN;
    yaml_token_delete(&Token);
  }
  yaml_parser_delete(&Parser);
}

// Settings of an emitter.
struct Style {
  yaml_encoding_t Encoding = YAML_UTF8_ENCODING;
  bool IsCanonical = false;
  bool HasUnicode = false;
  int Indent = 2;
  int Width = 60;
  yaml_break_t Break = YAML_LN_BREAK;
};

static void prepare(yaml_emitter_t &Emitter, const Style &Chosen) {
  yaml_emitter_initialize(&Emitter);
  yaml_emitter_set_encoding(&Emitter, Chosen.Encoding);
  yaml_emitter_set_canonical(&Emitter, Chosen.IsCanonical);
  yaml_emitter_set_unicode(&Emitter, Chosen.HasUnicode);
  yaml_emitter_set_indent(&Emitter, Chosen.Indent);
  yaml_emitter_set_width(&Emitter, Chosen.Width);
  yaml_emitter_set_break(&Emitter, Chosen.Break);
}

// Parses a text, and emits its events in another style.
static std::string convert(const std::string &Text, const Style &Chosen,
                           Checksum &Sum) {
  std::string Made;
  Source From{Text};
  yaml_parser_t Parser;
  yaml_emitter_t Emitter;
  yaml_parser_initialize(&Parser);
  yaml_parser_set_input(&Parser, Source::read, &From);
  prepare(Emitter, Chosen);
  yaml_emitter_set_output(&Emitter, append, &Made);
  for (bool IsEnd = false; !IsEnd;) {
    yaml_event_t Event;
    if (yaml_parser_parse(&Parser, &Event) == 0) {
      addError(Parser, Sum);
      break;
    }
    addEvent(Event, Sum);
    IsEnd = Event.type == YAML_STREAM_END_EVENT;
    // The emitter deletes the event.
    if (yaml_emitter_emit(&Emitter, &Event) == 0) {
      Sum.add(Emitter.problem);
      break;
    }
  }
  yaml_emitter_flush(&Emitter);
  yaml_parser_delete(&Parser);
  yaml_emitter_delete(&Emitter);
  Sum.add(Made);
  return Made;
}

static void addNode(yaml_document_t &Document, int Index, int Depth,
                    Checksum &Sum) {
  const yaml_node_t *Node = yaml_document_get_node(&Document, Index);
  if (Node == nullptr || Depth == 0)
    return;
  Sum.add(asText(Node->tag));
  if (Node->type == YAML_SCALAR_NODE)
    Sum.add(view(Node->data.scalar.value, Node->data.scalar.length));
  if (Node->type == YAML_SEQUENCE_NODE)
    for (const int *Each = Node->data.sequence.items.start;
         Each < Node->data.sequence.items.top; ++Each)
      addNode(Document, *Each, Depth - 1, Sum);
  if (Node->type == YAML_MAPPING_NODE)
    for (const yaml_node_pair_t *Each = Node->data.mapping.pairs.start;
         Each < Node->data.mapping.pairs.top; ++Each) {
      addNode(Document, Each->key, Depth - 1, Sum);
      addNode(Document, Each->value, Depth - 1, Sum);
    }
}

// Loads all documents, and dumps them in another style.
static void load(const std::string &Text, const Style &Chosen, Checksum &Sum) {
  std::string Made(8 * Text.size() + 1000, '\0');
  size_t Size = 0;
  yaml_parser_t Parser;
  yaml_emitter_t Emitter;
  yaml_parser_initialize(&Parser);
  yaml_parser_set_input_string(&Parser, asYaml(Text), Text.size());
  prepare(Emitter, Chosen);
  yaml_emitter_set_output_string(
      &Emitter, reinterpret_cast<unsigned char *>(Made.data()), Made.size(),
      &Size);
  yaml_emitter_open(&Emitter);
  for (bool IsEnd = false; !IsEnd;) {
    yaml_document_t Document;
    if (yaml_parser_load(&Parser, &Document) == 0) {
      addError(Parser, Sum);
      break;
    }
    IsEnd = yaml_document_get_root_node(&Document) == nullptr;
    addNode(Document, 1, 8, Sum);
    if (IsEnd)
      yaml_document_delete(&Document);
    else // The emitter deletes the document.
      Sum.add(yaml_emitter_dump(&Emitter, &Document));
  }
  yaml_emitter_close(&Emitter);
  yaml_emitter_delete(&Emitter);
  yaml_parser_delete(&Parser);
  Sum.add(std::string_view(Made).substr(0, Size));
}

static std::string value(Draw &Random) {
  switch (Random.below(9)) {
  case 0:
    return Random.text(30);
  case 1:
    return Random.text(3) + "\n  " + Random.text(12) + "\n\n";
  case 2:
    return " " + Random.word() + ": \"'\t\\ ";
  case 3:
    return "Gr\xc3\xbc\xc3\x9f" + Random.word() + " \xe2\x82\xac \xf0\x9f\x98\x80";
  case 4:
    return std::to_string(Random.below(1000)) + ".5";
  case 5:
    return "- " + Random.word() + " # no comment\x01\x7f\xc2\x85";
  case 6:
    return "";
  default:
    return Random.word();
  }
}

// Adds a random node to a document, and returns its number.
static int build(yaml_document_t &Document, int Depth, Draw &Random) {
  const uint32_t Kind = Depth == 0 ? 0 : Random.below(3);
  const std::string Tag = Random.below(5) == 0 ? "tag:example,2000:" +
                                                     Random.word()
                                               : "";
  const yaml_char_t *Tagged = Tag.empty() ? nullptr : asYaml(Tag);
  if (Kind == 0) {
    const std::string Text = value(Random);
    return yaml_document_add_scalar(
        &Document, Tagged, asYaml(Text), static_cast<int>(Text.size()),
        static_cast<yaml_scalar_style_t>(Random.below(6)));
  }
  const int Made =
      Kind == 1
          ? yaml_document_add_sequence(
                &Document, Tagged,
                static_cast<yaml_sequence_style_t>(Random.below(3)))
          : yaml_document_add_mapping(
                &Document, Tagged,
                static_cast<yaml_mapping_style_t>(Random.below(3)));
  int Last = 0;
  for (uint32_t Left = Random.below(6); Left > 0; --Left) {
    const int Item = Last > 0 && Random.below(6) == 0
                         ? Last // The emitter makes an alias.
                         : build(Document, Depth - 1, Random);
    if (Kind == 1)
      yaml_document_append_sequence_item(&Document, Made, Item);
    else
      yaml_document_append_mapping_pair(
          &Document, Made, build(Document, Depth / 3, Random), Item);
    Last = Item;
  }
  return Made;
}

// Emits random documents.
static std::string makeText(const Style &Chosen, Draw &Random, Checksum &Sum) {
  std::string Made;
  yaml_emitter_t Emitter;
  prepare(Emitter, Chosen);
  yaml_emitter_set_output(&Emitter, append, &Made);
  yaml_emitter_open(&Emitter);
  for (int Left = 0; Left < 4; ++Left) {
    yaml_document_t Document;
    std::string Handle = "!e!", Prefix = "tag:example,2000:";
    yaml_tag_directive_t Tags[] = {
        {reinterpret_cast<yaml_char_t *>(Handle.data()),
         reinterpret_cast<yaml_char_t *>(Prefix.data())}};
    yaml_version_directive_t Version = {1, 1};
    const bool HasTags = Left % 2 == 0;
    yaml_document_initialize(&Document, Left == 1 ? &Version : nullptr,
                             HasTags ? Tags : nullptr,
                             HasTags ? Tags + 1 : nullptr, 0, Left == 2);
    build(Document, 4, Random);
    Sum.add(yaml_emitter_dump(&Emitter, &Document));
  }
  yaml_emitter_close(&Emitter);
  yaml_emitter_delete(&Emitter);
  return Made;
}

// Emits events to a file, and parses the file.
static void useEvents(Draw &Random, Checksum &Sum) {
  std::FILE *File = std::tmpfile();
  yaml_emitter_t Emitter;
  prepare(Emitter, Style{});
  yaml_emitter_set_output_file(&Emitter, File);
  yaml_event_t Event;
  const auto emit = [&](int IsMade) {
    Sum.add(IsMade);
    Sum.add(yaml_emitter_emit(&Emitter, &Event));
  };
  emit(yaml_stream_start_event_initialize(&Event, YAML_UTF8_ENCODING));
  emit(yaml_document_start_event_initialize(&Event, nullptr, nullptr, nullptr,
                                            1));
  emit(yaml_mapping_start_event_initialize(&Event, nullptr, nullptr, 1,
                                           YAML_BLOCK_MAPPING_STYLE));
  for (int Left = 0; Left < 20; ++Left) {
    const std::string Key = Random.word(), Value = value(Random);
    const std::string Anchor = "a" + std::to_string(Left);
    emit(yaml_scalar_event_initialize(&Event, nullptr, nullptr, asYaml(Key),
                                      static_cast<int>(Key.size()), 1, 1,
                                      YAML_ANY_SCALAR_STYLE));
    emit(yaml_sequence_start_event_initialize(
        &Event, asYaml(Anchor), asYaml("!list"), 0,
        Left % 2 == 0 ? YAML_FLOW_SEQUENCE_STYLE : YAML_BLOCK_SEQUENCE_STYLE));
    emit(yaml_scalar_event_initialize(&Event, nullptr, nullptr, asYaml(Value),
                                      static_cast<int>(Value.size()), 1, 1,
                                      YAML_ANY_SCALAR_STYLE));
    if (Left > 0) {
      const std::string Last = "a" + std::to_string(Left - 1);
      emit(yaml_alias_event_initialize(&Event, asYaml(Last)));
    }
    emit(yaml_sequence_end_event_initialize(&Event));
  }
  emit(yaml_mapping_end_event_initialize(&Event));
  emit(yaml_document_end_event_initialize(&Event, 1));
  emit(yaml_stream_end_event_initialize(&Event));
  yaml_emitter_delete(&Emitter);
  std::rewind(File);
  yaml_parser_t Parser;
  yaml_parser_initialize(&Parser);
  yaml_parser_set_encoding(&Parser, YAML_UTF8_ENCODING);
  yaml_parser_set_input_file(&Parser, File);
  for (bool IsEnd = false; !IsEnd && yaml_parser_parse(&Parser, &Event) != 0;) {
    addEvent(Event, Sum);
    IsEnd = Event.type == YAML_STREAM_END_EVENT;
    yaml_event_delete(&Event);
  }
  yaml_parser_delete(&Parser);
  std::fclose(File);
}

static void tryTexts(Checksum &Sum) {
  for (const char *Text :
       {"%YAML 1.1\n%TAG !x! tag:x,1:\n---\n!x!a &b {c: *b, ? d : e}\n...\n",
        "- |2-\n   text\n- >+\n  folded\n  more\n\n   kept\n\n",
        "\"\\x41\\u00e9\\U0001f600\\n\\\n  \\t\": 'it''s'\n", "a: [1, {b: c}, ]",
        "? - key\n: - value\n", "!<tag:y> plain text\n  goes on # comment\n",
        "a: b: c", "[a", "{a: b", "'open", "\"\\q\"", "*none", "%YAML 9.9\n---\n",
        "- a\n b", "&a &b c", "\ta", "a: |x\n", "@at", "%BAD\n---\n", "!<open",
        "\xff\xff", "\xef\xbb\xbf" "bom: 1\n", "a: &x [1]\nb: *x\n", "--- a\n--- b\n",
        "a:\n  - b\n c: d", "\"\\ud800\"", "!a!b c", "- - - -\n", "\x01"}) {
    scan(Text, Sum);
    convert(Text, Style{}, Sum);
    load(Text, Style{}, Sum);
  }
}

int main(int, char **Arguments) {
  Draw Random(1);
  Checksum Sum;
  Sum.add(yaml_get_version_string());
  int Major = 0, Minor = 0, Patch = 0;
  yaml_get_version(&Major, &Minor, &Patch);
  Sum.add(Major * 10000 + Minor * 100 + Patch);
  const Style Styles[] = {{},
                          {YAML_UTF16LE_ENCODING, false, true, 4, 30},
                          {YAML_UTF16BE_ENCODING, true, false, 3, 80,
                           YAML_CRLN_BREAK},
                          {YAML_UTF8_ENCODING, true, true, 9, -1,
                           YAML_CR_BREAK},
                          {YAML_UTF8_ENCODING, false, true, 5, 20}};
  for (int Round = std::atoi(Arguments[1]); Round > 0; --Round) {
    for (const Style &Each : Styles) {
      std::string Text = makeText(Each, Random, Sum);
      Sum.add(Text);
      scan(Text, Sum);
      Text = convert(Text, Styles[Random.below(5)], Sum);
      load(Text, Styles[Random.below(5)], Sum);
      for (int Left = 0; Left < 4 && !Text.empty(); ++Left) {
        Text[Random.below(static_cast<uint32_t>(Text.size()))] =
            "\"'{}[]:-#\n &*!|>%"[Random.below(17)];
        convert(Text, Each, Sum);
      }
    }
    useEvents(Random, Sum);
    tryTexts(Sum);
  }
  Sum.print("libyaml");
}
