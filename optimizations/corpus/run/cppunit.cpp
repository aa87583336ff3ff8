// Runs suites of tests with CppUnit, of which some fail, and writes their results in
// all formats. The program's argument is the number of rounds.
#include "driver.h"
#include <cppunit/BriefTestProgressListener.h>
#include <cppunit/CompilerOutputter.h>
#include <cppunit/TestCaller.h>
#include <cppunit/TestFailure.h>
#include <cppunit/TestPath.h>
#include <cppunit/TestResult.h>
#include <cppunit/TestResultCollector.h>
#include <cppunit/TestRunner.h>
#include <cppunit/TextOutputter.h>
#include <cppunit/TextTestResult.h>
#include <cppunit/XmlOutputter.h>
#include <cppunit/XmlOutputterHook.h>
#include <cppunit/extensions/ExceptionTestCaseDecorator.h>
#include <cppunit/extensions/HelperMacros.h>
#include <cppunit/extensions/RepeatedTest.h>
#include <cppunit/extensions/TestFactoryRegistry.h>
#include <cppunit/extensions/TestSetUp.h>
#include <cppunit/plugin/PlugInManager.h>
#include <cppunit/plugin/PlugInParameters.h>
#include <cppunit/tools/StringTools.h>
#include <cppunit/tools/XmlDocument.h>
#include <cppunit/tools/XmlElement.h>

#include <cstdlib>
#include <memory>
#include <sstream>
#include <stdexcept>

using namespace CppUnit;

static Draw Random(1);

class Words : public TestFixture {
  CPPUNIT_TEST_SUITE(Words);
  CPPUNIT_TEST(testEqual);
  CPPUNIT_TEST(testLength);
  CPPUNIT_TEST(testNumbers);
  CPPUNIT_TEST_EXCEPTION(testThrows, std::out_of_range);
  CPPUNIT_TEST_FAIL(testFails);
  CPPUNIT_TEST(testError);
  CPPUNIT_TEST_SUITE_PROPERTY("kind", "text");
  CPPUNIT_TEST_SUITE_END();

  std::string Word;

public:
  void setUp() override { Word = Random.word(); }
  void tearDown() override { Word.clear(); }
  void testEqual() {
    CPPUNIT_ASSERT_EQUAL(Word, Word + "");
    CPPUNIT_ASSERT_EQUAL_MESSAGE("a word", Word.substr(0, 1), Word);
  }
  void testLength() {
    CPPUNIT_ASSERT_LESS(size_t(11), Word.size());
    CPPUNIT_ASSERT_GREATEREQUAL(size_t(7), Word.size());
  }
  void testNumbers() {
    const double Real = Random.below(1000) / 1000.0;
    CPPUNIT_ASSERT_DOUBLES_EQUAL(0.5, Real, 0.4);
    CPPUNIT_ASSERT_MESSAGE("above the middle", Real < 0.6);
    CPPUNIT_ASSERT_EQUAL(1.0, Real + Real);
  }
  void testThrows() { Word.at(Random.below(30)) = ' '; }
  void testFails() { CPPUNIT_FAIL("it fails: " + Word); }
  void testError() {
    if (Word.size() > 6)
      throw std::runtime_error(Word);
    if (Word.size() > 4)
      throw 7;
    CPPUNIT_ASSERT_THROW(throw 1, int);
    CPPUNIT_ASSERT_NO_THROW_MESSAGE("no exception", Word.at(2));
    CPPUNIT_ASSERT_ASSERTION_FAIL(CPPUNIT_ASSERT(Word.empty()));
    CPPUNIT_ASSERT_ASSERTION_PASS(CPPUNIT_ASSERT(Word.size() < 4));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(Words);

class Numbers : public Words {
  CPPUNIT_TEST_SUB_SUITE(Numbers, Words);
  CPPUNIT_TEST(testSum);
  CPPUNIT_TEST_SUITE_END();

public:
  void testSum() {
    int Sum = 0;
    for (int Index = 0; Index < 9; ++Index)
      Sum += static_cast<int>(Random.below(9));
    CPPUNIT_ASSERT_EQUAL(36, Sum);
  }
};
CPPUNIT_TEST_SUITE_NAMED_REGISTRATION(Numbers, "numbers");
CPPUNIT_REGISTRY_ADD_TO_DEFAULT("numbers");

class Listener : public TestListener {
  Checksum &Sum;

public:
  explicit Listener(Checksum &Sum) : Sum(Sum) {}
  void startTest(Test *Each) override { Sum.add(Each->getName()); }
  void endSuite(Test *Suite) override { Sum.add(Suite->countTestCases()); }
  void addFailure(const TestFailure &Failure) override {
    Sum.add(Failure.isError());
    Sum.add(Failure.sourceLine().lineNumber());
    Sum.add(Failure.thrownException()->message().details());
    Sum.add(Failure.failedTestName());
  }
};

class Hook : public XmlOutputterHook {
  void failTestAdded(XmlDocument *, XmlElement *Element, Test *,
                     TestFailure *) override {
    Element->addElement(new XmlElement("more", "a <hook> & its \"text\""));
  }
  void statisticsAdded(XmlDocument *Document, XmlElement *Element) override {
    Element->addAttribute("elements", Document->rootElement().elementCount());
  }
};

class SetUp : public TestSetUp {
  void setUp() override { Random.word(); }
  void tearDown() override { Random.below(3); }

public:
  using TestSetUp::TestSetUp;
};

static void addPaths(Test &All, Checksum &Sum) {
  for (const char *Name : {"Words", "Words/Words::testSum", "nothing",
                           "/All Tests/Numbers/Numbers::testSum", "", "/x"})
    try {
      const TestPath Path = All.resolveTestPath(Name);
      Sum.add(Path.toString());
      Sum.add(Path.getTestCount());
      TestPath Copy(Path, 0, 1);
      Copy.add(Path);
      Copy.insert(Path, 0);
      Copy.removeTest(1);
      Copy.up();
      Sum.add(Copy.toString());
    } catch (const std::invalid_argument &Error) {
      Sum.add(Error.what());
    }
  TestPath Found;
  Sum.add(All.findTestPath("Numbers::testSum", Found));
  Sum.add(Found.isValid() ? Found.toString() : "none");
  for (int Index = 0; Index < All.getChildTestCount(); ++Index)
    addPaths(*All.getChildTestAt(Index), Sum);
}

static void write(TestResultCollector &Collected, Checksum &Sum) {
  std::ostringstream Out;
  TextOutputter(&Collected, Out).write();
  CompilerOutputter Lines(&Collected, Out);
  Lines.setLocationFormat("%l:%f:%%%p: ");
  Lines.setWrapColumn(30);
  Lines.write();
  CompilerOutputter(&Collected, Out, "%f(%l) : ").write();
  XmlOutputter Elements(&Collected, Out, "UTF-8");
  Hook More;
  Elements.addHook(&More);
  Elements.setStyleSheet("results.xsl");
  Elements.setStandalone(false);
  Elements.write();
  Elements.removeHook(&More);
  Sum.add(Out.str());
}

static void run(Checksum &Sum) {
  TestSuite All("All");
  All.addTest(TestFactoryRegistry::getRegistry().makeTest());
  All.addTest(new RepeatedTest(Words::suite(), 3));
  All.addTest(new SetUp(Numbers::suite()));
  All.addTest(new ExceptionTestCaseDecorator<std::runtime_error>(
      new TestCaller<Words>("once", &Words::testError)));
  TestResult Result;
  TestResultCollector Collected;
  TextTestResult Text;
  Listener Added(Sum);
  Result.addListener(&Collected);
  Result.addListener(&Added);
  Result.addListener(&Text);
  All.run(&Result);
  Sum.add(Collected.runTests() + 100 * Collected.testErrors());
  Sum.add(Collected.testFailures() + 100 * Collected.testFailuresTotal());
  Sum.add(Collected.wasSuccessful());
  write(Collected, Sum);
  std::ostringstream Printed;
  Text.print(Printed);
  Sum.add(Printed.str());
  addPaths(All, Sum);
  TestRunner Runner;
  Runner.addTest(TestFactoryRegistry::getRegistry("numbers").makeTest());
  Collected.reset();
  Runner.run(Result, "Numbers/Numbers::testSum");
  Sum.add(Collected.runTests());
}

static void useTools(Checksum &Sum) {
  const std::string Text = Random.text(40);
  Sum.add(StringTools::wrap(Text, 20));
  for (const std::string &Part : StringTools::split(Text + "\n\nend", 'e'))
    Sum.add(Part);
  Sum.add(StringTools::toString(Random.below(99) / 8.0));
  XmlDocument Document("latin-1", "style.xsl");
  auto *Root = new XmlElement("root");
  Document.setRootElement(Root);
  for (int Index = 0; Index < 20; ++Index) {
    auto *Element = new XmlElement(Random.word(), Random.text(3) + " <&>'\"");
    Element->addAttribute("number", Index);
    Element->addAttribute("text", Random.word());
    (Index % 3 != 2 ? Root : Root->elementAt(0))->addElement(Element);
    if (Index == 0)
      Root->addElement(new XmlElement("number", Index));
  }
  Sum.add(Document.toString());
  try {
    Root->elementFor("nothing");
  } catch (const std::invalid_argument &Error) {
    Sum.add(Error.what());
  }
  try {
    PlugInManager Manager;
    Manager.load("./not-there.so", PlugInParameters("a=b"));
  } catch (const std::runtime_error &Error) {
    Sum.add(std::string(Error.what()).substr(0, 20));
  }
}

int main(int, char **Arguments) {
  Checksum Sum;
  for (int Round = std::atoi(Arguments[1]); Round > 0; --Round) {
    run(Sum);
    useTools(Sum);
  }
  Sum.print("cppunit");
}
