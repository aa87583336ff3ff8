// Parses, queries, changes and writes, with pugixml, the XML files that the
// program's arguments name.
#include "pugixml.hpp"
#include "driver.h"

#include <fstream>
#include <sstream>

using namespace pugi;

struct Walker : xml_tree_walker {
  Checksum &Sum;
  explicit Walker(Checksum &Sum) : Sum(Sum) {}
  bool begin(xml_node &) override { return true; }
  bool for_each(xml_node &Node) override {
    Sum.add(Node.name());
    Sum.add(depth() * 16 + static_cast<int>(Node.type()));
    Sum.add(Node.value());
    return true;
  }
  bool end(xml_node &) override { return true; }
};

struct Writer : xml_writer {
  Checksum &Sum;
  explicit Writer(Checksum &Sum) : Sum(Sum) {}
  void write(const void *Data, size_t Size) override {
    Sum.add(std::string_view(static_cast<const char *>(Data), Size));
  }
};

static void loadAll(const char *Path, Checksum &Sum) {
  std::ifstream File(Path);
  std::stringstream Text;
  Text << File.rdbuf();
  const std::string Bytes = Text.str();
  for (unsigned Options : {parse_minimal, parse_default, parse_full,
                           parse_default | parse_ws_pcdata_single |
                               parse_trim_pcdata | parse_wconv_attribute,
                           parse_fragment | parse_wnorm_attribute}) {
    xml_document Document;
    Sum.add(Document.load_buffer(Bytes.data(), Bytes.size(), Options)
                .description());
    Walker Walk(Sum);
    Document.traverse(Walk);
  }
  const std::wstring Wide = as_wide(Bytes);
  Sum.add(as_utf8(Wide) == Bytes);
  xml_document Document;
  std::wistringstream WideStream(Wide);
  Sum.add(Document.load(WideStream).description());
  std::istringstream Stream(Bytes);
  Sum.add(Document.load(Stream).description());
  for (xml_encoding Encoding :
       {encoding_utf16_be, encoding_utf16_le, encoding_utf32_be,
        encoding_utf32_le, encoding_latin1, encoding_utf8}) {
    std::ostringstream Out;
    Document.save(Out, "  ", format_indent_attributes | format_write_bom,
                  Encoding);
    const std::string Coded = Out.str();
    Sum.add(Coded);
    xml_document Back;
    Sum.add(Back.load_buffer(Coded.data(), Coded.size(), parse_full, Encoding)
                .description());
    std::string Changed = Coded;
    Sum.add(
        Back.load_buffer_inplace(Changed.data(), Changed.size()).description());
  }
  std::wostringstream WideOut;
  Document.save(WideOut, "", format_raw);
  Sum.add(as_utf8(WideOut.str()));
  Writer Out(Sum);
  Document.save(Out, "\t", format_no_empty_element_tags);
  Document.save_file("written.xml");
  Sum.add(Document.load_file("written.xml").description());
}

static void query(xml_document &Document, Checksum &Sum) {
  xpath_variable_set Variables;
  Variables.set("limit", 50.0);
  Variables.set("word", "a");
  Variables.set("yes", true);
  Variables.set("items", Document.select_nodes("/list/item[position() < 9]"));
  for (const char *Query :
       {"//item[@kind='a']/@id", "/list/item[position() <= $limit]",
        "//item[last()]", "//item[contains(., $word)][3]", "$items/x:part",
        "//item[starts-with(@id, 'i1')]/following-sibling::item[1]",
        "//x:part/ancestor::*", "//empty/preceding-sibling::node()",
        "/list/item[2]/following::*[@kind][position() = 4]",
        "/list/item[9]/preceding::item", "//item[5]/descendant-or-self::*",
        "//comment() | //processing-instruction('do')", "//item/self::item/..",
        "(//item)[7]/attribute::*", "//*[local-name() = 'part']", "id('i3')",
        "//item[not(@kind = 'b') and $yes or @id = 'i4']",
        "//item[lang('en')] | //item[@x:at >= 3]", "//item/namespace::*"}) {
    try {
      xpath_query Compiled(Query, &Variables);
      xpath_node_set Found = Compiled.evaluate_node_set(Document);
      Found.sort(true);
      Sum.add(static_cast<int>(Found.size()));
      for (const xpath_node &Each : Found)
        Sum.add(Each.attribute() ? Each.attribute().value()
                                 : Each.node().name());
    } catch (const xpath_exception &Error) {
      Sum.add(Error.what());
    }
  }
  for (const char *Query :
       {"count(//item)",
        "sum(//item/@id)",
        "string-length(//item[2])",
        "floor(3.7) + ceiling(2.1) - round(1.5) * 7 div 3 mod 5",
        "substring('abcdef', 2, 3)",
        "substring-before('a=b', '=')",
        "substring-after('a=b', '=')",
        "translate('abc', 'ab', 'xy')",
        "normalize-space('  a   b ')",
        "concat('a', 'b', 1, true())",
        "boolean(//nothing) != false()",
        "number('12.5e') = 3",
        "-1 div 0 < 1 div 0",
        "name(//x:part) = local-name(//x:part)",
        "namespace-uri(//x:part)",
        "string(1 div 3)",
        "//item > 3",
        "//item/@kind = //item/@id",
        "3 >= //item",
        "$limit * 2",
        "not($yes)",
        "string($items)",
        "1 +",
        "unknown()",
        "'open"}) {
    xpath_query Compiled;
    try {
      Compiled = xpath_query(Query, &Variables);
    } catch (const xpath_exception &Error) {
      Sum.add(Error.result().description());
      continue;
    }
    Sum.add(Compiled.evaluate_string(Document));
    Sum.add(Compiled.evaluate_boolean(Document));
    Sum.add(Compiled.evaluate_number(Document) > 10);
    Sum.add(static_cast<int>(Compiled.return_type()));
  }
  xpath_variable_set Copy(Variables), Moved(std::move(Copy));
  Sum.add(Moved.get("limit")->get_number());
  Sum.add(Moved.get("word")->get_string());
  Sum.add(Moved.get("yes")->get_boolean());
}

static void change(xml_document &Document, Checksum &Sum) {
  xml_node List = Document.document_element();
  int Number = 0;
  for (xml_node Item : List.children("item")) {
    xml_attribute First = Item.first_attribute();
    Item.insert_attribute_before("before", First) = ++Number;
    Item.insert_attribute_after("after", First) = Number * 0.5;
    Item.prepend_attribute("first").set_value(Number % 3 == 0);
    Item.append_attribute("last").set_value(Number * 1.5f, 4);
    Item.append_attribute("unsigned") = 7u;
    Item.append_attribute("long") = -9L;
    Item.append_attribute("more") = 9UL;
    Item.append_copy(Item.first_attribute()).set_name("copied");
    Item.prepend_copy(Item.last_attribute());
    Item.append_child("number").text() = Number;
    Item.prepend_child("real").text().set(Number / 7.0);
    xml_node Text = Item.append_child(node_cdata);
    Text.set_value("<cdata> & more");
    Item.insert_child_after(node_comment, Text).set_value("comment");
    Item.insert_child_before("other", Text).text().set(true);
    Item.insert_child_after("another", Text).text() = 3.5f;
    Item.append_child(node_pi).set_name("pi");
    Item.remove_child("empty");
    Item.remove_attribute("kind");
    if (xml_node Next = Item.next_sibling(); Number % 5 == 0 && Next)
      Item.append_copy(Next.first_child());
    if (Number % 7 == 0)
      Item.append_move(Item.first_child());
    Sum.add(Item.attribute("before").as_int() + Item.attribute("x").as_int(4));
    Sum.add(Item.attribute("after").as_double());
    Sum.add(static_cast<double>(Item.attribute("last").as_float()));
    Sum.add(Item.attribute("unsigned").as_uint());
    Sum.add(Item.attribute("first").as_bool());
    Sum.add(Item.child("number").text().as_int());
    Sum.add(Item.child("real").text().as_double() +
            Item.child("another").text().as_float());
    Sum.add(Item.child_value("number"));
    Sum.add(Item.child("other").text().as_bool());
    if (Number % 50 == 0)
      Sum.add(Item.path() + Item.first_element_by_path("../item/real").name());
  }
  Sum.add(List.find_child_by_attribute("item", "id", "i7").child_value());
  Sum.add(List.find_child_by_attribute("id", "i9").name());
  Sum.add(
      List.find_node([](xml_node Node) { return Node.type() == node_cdata; })
          .value());
  Sum.add(List.last_child().previous_sibling("item").last_attribute().name());
  for (auto At = List.end(); At != List.begin();) {
    --At;
    for (auto Each = At->attributes_end(); Each != At->attributes_begin();)
      Sum.add((--Each)->name());
    for (xml_attribute Each : At->attributes())
      Sum.add(Each.previous_attribute().as_string("none"));
  }
  while (xml_node Item = List.child("item")) {
    if (++Number % 3 == 0)
      Item.remove_attributes();
    if (Number % 4 == 0)
      Item.remove_children();
    Writer Out(Sum);
    Item.print(Out, "", format_raw);
    List.remove_child(Item);
  }
  Sum.add(List.append_buffer("<a><b/></a>", 11).description());
  xml_document Moved = std::move(Document);
  Document.reset(Moved);
  std::ostringstream Out;
  Document.print(Out);
  Sum.add(Out.str());
}

int main(int Count, char **Arguments) {
  for (int Index = 1; Index < Count; ++Index) {
    Checksum Sum;
    loadAll(Arguments[Index], Sum);
    xml_document Document;
    Sum.add(Document.load_file(Arguments[Index], parse_full).description());
    query(Document, Sum);
    change(Document, Sum);
    for (const char *Bad : {"<a>", "<a b='1' b=2/>", "<a></b>", "<!-- ", "<?x",
                            "<![CDATA[", "<!DOCTYPE a", "</a>", ""})
      Sum.add(xml_document().load_string(Bad, parse_full).description());
    Sum.print(Arguments[Index]);
  }
}
