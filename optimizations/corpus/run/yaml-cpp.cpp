// Emits, loads, changes, copies and damages YAML documents with yaml-cpp. The
// program's argument is the number of rounds.
#include "driver.h"
#include "yaml-cpp/yaml.h"

#include <cstdlib>
#include <list>
#include <sstream>
#include <vector>

// Visits the nodes of the first levels, because a node may contain itself.
static void visit(const YAML::Node &Node, Checksum &Sum, int Levels = 12) {
  if (Levels == 0)
    return;
  Sum.add(static_cast<int>(Node.Type()));
  Sum.add(Node.Tag());
  Sum.add(Node.Mark().line * 1000 + Node.Mark().column);
  if (Node.IsScalar())
    Sum.add(Node.Scalar());
  if (Node.IsSequence())
    for (const YAML::Node Each : Node)
      visit(Each, Sum, Levels - 1);
  if (Node.IsMap())
    for (const auto &Each : Node) {
      visit(Each.first, Sum, Levels - 1);
      visit(Each.second, Sum, Levels - 1);
    }
}

// Calls an action that may throw an error.
template <typename Action> static void attempt(Checksum &Sum, Action Try) {
  try {
    Try();
  } catch (const YAML::Exception &Error) {
    Sum.add(Error.what());
  }
}

static std::string value(Draw &Random) {
  switch (Random.below(7)) {
  case 0:
    return Random.text(20);
  case 1:
    return Random.text(2) + "\n " + Random.text(9) + "\n";
  case 2:
    return "\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80 \t\"'\\";
  case 3:
    return "true";
  case 4:
    return std::to_string(Random.below(1000));
  case 5:
    return "- # " + Random.word();
  default:
    return Random.word();
  }
}

static void emit(YAML::Emitter &Out, int Depth, Draw &Random) {
  static const YAML::EMITTER_MANIP Styles[] = {
      YAML::SingleQuoted, YAML::DoubleQuoted, YAML::Literal, YAML::Auto};
  switch (Depth == 0 ? 0 : Random.below(4)) {
  case 0:
    Out << Styles[Random.below(4)] << value(Random);
    if (Random.below(8) == 0)
      Out << YAML::Comment(Random.text(3) + "\n" + Random.word());
    return;
  case 1:
    Out << (Random.below(2) == 0 ? YAML::Flow : YAML::Block) << YAML::BeginSeq;
    Out << Random.below(100) / 8.0 << Random.below(99) << true << YAML::Null;
    for (uint32_t Left = Random.below(4); Left > 0; --Left)
      emit(Out, Depth - 1, Random);
    Out << YAML::EndSeq;
    return;
  default:
    if (Random.below(4) == 0)
      Out << YAML::LocalTag("kind");
    Out << (Random.below(2) == 0 ? YAML::Flow : YAML::Block) << YAML::BeginMap;
    for (uint32_t Left = 1 + Random.below(4); Left > 0; --Left) {
      Out << (Random.below(9) == 0 ? YAML::LongKey : YAML::Auto) << YAML::Key
          << Random.word() << YAML::Value;
      emit(Out, Depth - 1, Random);
    }
    Out << YAML::EndMap;
  }
}

static std::string emitAll(Draw &Random, Checksum &Sum) {
  YAML::Emitter Out;
  Sum.add(Out.SetIndent(2 + Random.below(4)));
  Out.SetSeqFormat(YAML::Block);
  Out.SetMapFormat(YAML::Block);
  Out.SetBoolFormat(YAML::YesNoBool);
  Out.SetIntBase(Random.below(2) == 0 ? YAML::Hex : YAML::Dec);
  Out.SetOutputCharset(Random.below(2) == 0 ? YAML::EscapeNonAscii
                                            : YAML::EmitNonAscii);
  Out.SetPostCommentIndent(3);
  Out.SetDoublePrecision(5);
  Out << YAML::BeginMap << YAML::Key << "anchor" << YAML::Value
      << YAML::Anchor("a") << std::vector<int>{1, 2, 3};
  Out << YAML::Key << "alias" << YAML::Value << YAML::Alias("a");
  Out << YAML::Key << "tag" << YAML::Value << YAML::VerbatimTag("tag:x")
      << std::list<std::string>{"p", "q"};
  Out << YAML::Key << "binary" << YAML::Value
      << YAML::Binary(reinterpret_cast<const unsigned char *>("bytes"), 5);
  for (int Left = 0; Left < 5; ++Left) {
    Out << YAML::Key << Random.word() << YAML::Value;
    emit(Out, 4, Random);
  }
  Out << YAML::EndMap << YAML::Newline;
  Sum.add(Out.good());
  Sum.add(Out.GetLastError());
  return Out.c_str();
}

static void change(YAML::Node Root, Draw &Random, Checksum &Sum) {
  Root["new"] = Random.word();
  Root["list"].push_back(Random.below(9));
  Root["list"].push_back(YAML::Load("{a: [1, 2.5, ~]}"));
  Root["map"][3] = true;
  Root["same"] = Root["list"];
  Root.remove("binary");
  Root.force_insert("forced", 1.5);
  Root["map"].SetTag("!tagged");
  Root["list"].SetStyle(YAML::EmitterStyle::Flow);
  Sum.add(Root["same"].is(Root["list"]));
  Sum.add(static_cast<uint64_t>(Root.size()));
  attempt(Sum, [&] { Sum.add(Root["new"].as<int>()); });
  Sum.add(Root["nothing"].as<std::string>("default"));
  attempt(Sum, [&] { Root["nothing"]["x"].as<int>(); });
  attempt(Sum, [&] {
    for (int Each : Root["anchor"].as<std::vector<int>>())
      Sum.add(Each);
  });
  const YAML::Node Copy = YAML::Clone(Root);
  std::ostringstream Text;
  Text << Copy;
  Sum.add(Text.str());
  visit(Copy, Sum);
}

static void tryTexts(Checksum &Sum) {
  for (const char *Text :
       {"%YAML 1.2\n%TAG !x! tag:x,1:\n---\n!x!a &b {c: *b, ? d : e}\n...\n",
        "- |2-\n   text\n- >+\n  folded\n  more\n\n   kept\n\n",
        "\xff\xfe"
        "a",
        "\"\\x41\\u00e9\\U0001f600\\n\\\n  \\t\": 'it''s'\n",
        "a: [1, {b: c}, ]",
        "? - key\n: - value\n",
        "!<tag:y> plain\n  goes on # comment\n",
        "a: b: c",
        "[a",
        "{a: b",
        "'open",
        "\"\\q\"",
        "*none",
        "&a &b c",
        "\ta",
        "!a !b c",
        "@at",
        "--- a\n--- b\n",
        "a:\n  - b\n c: d",
        "- - - -\n",
        "\xef\xbb\xbf"
        "bom: 1\n",
        "<<: {a: 1}\nb: 2",
        ".inf: .nan",
        "0x1f: 017"})
    attempt(Sum, [&] {
      for (const YAML::Node &Each : YAML::LoadAll(Text))
        visit(Each, Sum);
    });
}

int main(int, char **Arguments) {
  Draw Random(1);
  Checksum Sum;
  for (int Round = std::atoi(Arguments[1]); Round > 0; --Round) {
    std::string Text = emitAll(Random, Sum);
    Sum.add(Text);
    attempt(Sum, [&] {
      const YAML::Node Root = YAML::Load(Text);
      visit(Root, Sum);
      change(Root, Random, Sum);
    });
    for (int Left = 0; Left < 4; ++Left) {
      Text[Random.below(static_cast<uint32_t>(Text.size()))] =
          "\"'{}[]:-#\n &*!|>%"[Random.below(17)];
      attempt(Sum, [&] { visit(YAML::Load(Text), Sum); });
    }
    tryTexts(Sum);
  }
  Sum.print("yaml-cpp");
}
