//===- ModelSpecTest.cpp - The string that names a model ------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tests ModelSpec: its grammar, its errors, and the values of options.
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Extend/RunnerFactory.h"
#include "MLCompilerBridge/Transport/Transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace MLBridge;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Pair;

static ModelSpec parse(std::string_view Text) {
  Expected<ModelSpec> Spec = ModelSpec::parse(Text);
  EXPECT_TRUE(Spec) << Spec.message();
  return Spec ? *Spec : ModelSpec();
}

static std::string parseError(std::string_view Text) {
  Expected<ModelSpec> Spec = ModelSpec::parse(Text);
  EXPECT_FALSE(Spec) << Text;
  EXPECT_EQ(Spec.code(), ErrorCode::InvalidArgument);
  return Spec.takeError().message();
}

TEST(ModelSpecTest, SchemeAndPath) {
  struct Case {
    const char *Text, *Scheme, *Path;
  };
  for (const Case &C : {
           Case{"none", "none", ""},
           Case{"none:", "none", ""},
           Case{"pipe:/tmp/advisor", "pipe", "/tmp/advisor"},
           Case{"shm:advisor", "shm", "advisor"},
           Case{"grpc://host:50051", "grpc", "//host:50051"},
           Case{"onnx:node=a.onnx,colour=b.onnx", "onnx",
                "node=a.onnx,colour=b.onnx"},
           Case{"x-y_z+1:a&b", "x-y_z+1", "a&b"},
           Case{"pipe:a%3fb%7Cc%25", "pipe", "a?b|c%"},
           Case{"pipe:%C3%A4 b", "pipe", "\xC3\xA4 b"},
       }) {
    ModelSpec Spec = parse(C.Text);
    EXPECT_EQ(Spec.Scheme, C.Scheme) << C.Text;
    EXPECT_EQ(Spec.Path, C.Path) << C.Text;
    EXPECT_TRUE(Spec.Options.empty()) << C.Text;
    EXPECT_EQ(Spec.Inner, "") << C.Text;
  }
}

TEST(ModelSpecTest, Options) {
  EXPECT_THAT(parse("pipe:x?serdes=json&timeout=5s").Options,
              ElementsAre(Pair("serdes", "json"), Pair("timeout", "5s")));
  EXPECT_THAT(parse("none?a=").Options, ElementsAre(Pair("a", "")));
  EXPECT_THAT(parse("x:y?k%3D=1%262=3?").Options,
              ElementsAre(Pair("k=", "1&2=3?")));
  ModelSpec Spec = parse("x:y?a=1");
  EXPECT_EQ(Spec.option("a", "2"), "1");
  EXPECT_EQ(Spec.option("b", "2"), "2");
}

TEST(ModelSpecTest, Decorators) {
  ModelSpec Spec = parse("record:log.bin?a=b|fallback|pipe:x|y?c=d");
  EXPECT_EQ(Spec.Scheme, "record");
  EXPECT_EQ(Spec.Path, "log.bin");
  EXPECT_THAT(Spec.Options, ElementsAre(Pair("a", "b")));
  EXPECT_EQ(Spec.Inner, "fallback|pipe:x|y?c=d") << "as it was written";
  EXPECT_EQ(parse("fallback|x").Scheme, "fallback");
  EXPECT_EQ(parse("fallback|x").Inner, "x");
  EXPECT_EQ(parse("a:b?c=%7C|d").option("c", ""), "|");
}

TEST(ModelSpecTest, ErrorsSayWhatWasExpectedAndWhere) {
  EXPECT_EQ(parseError(""), "model spec '': expected a scheme such as 'pipe:' "
                            "at position 0, found the end");
  EXPECT_THAT(parseError("/tmp/advisor"),
              HasSubstr("expected a scheme such as 'pipe:', of letters, "
                        "digits, _, + and -, at position 0, found '/'"));
  EXPECT_THAT(
      parseError("policy.onnx?seed=1"),
      EndsWith("at position 6, found '.'; did you mean 'onnx:policy.onnx'?"));
  EXPECT_THAT(parseError("./libpolicy.so"),
              EndsWith("did you mean 'aot:./libpolicy.so'?"));
  EXPECT_THAT(parseError("policy.pt"), EndsWith("found '.'"));
  EXPECT_THAT(parseError("my pipe:x"), HasSubstr("at position 2, found ' '"));
  EXPECT_THAT(parseError(":x"), HasSubstr("a scheme"));
  EXPECT_THAT(parseError("?a=b"), HasSubstr("a scheme"));
  EXPECT_THAT(parseError("|x"), HasSubstr("a scheme"));
  EXPECT_THAT(parseError("a:b|"),
              HasSubstr("expected the spec of a model after '|' at position "
                        "4, found the end"));
  EXPECT_THAT(parseError("a:b?"),
              HasSubstr("expected an option key=value at position 4, found "
                        "the end"));
  EXPECT_THAT(parseError("a:b?c"), HasSubstr("key=value at position 4"));
  EXPECT_THAT(parseError("a:b?=c"), HasSubstr("key=value at position 4"));
  EXPECT_THAT(parseError("a:b?c=d&"), HasSubstr("key=value at position 8"));
  EXPECT_THAT(parseError("a:b?c=d&&e=f"), HasSubstr("key=value at position 8"));
  EXPECT_THAT(parseError("a:b?c=d|"), HasSubstr("at position 8"));
  EXPECT_THAT(parseError("a:b?c=d&c=e"),
              HasSubstr("expected each option once at position 8"));
  for (const char *Text : {"a:b%", "a:b%4", "a:b%4g", "a:b%|c", "a:b%4?c=d"})
    EXPECT_THAT(parseError(Text), HasSubstr("two hexadecimal digits")) << Text;
  EXPECT_THAT(parseError("a:b?c=%zz"), HasSubstr("at position 7, found 'z'"));
  EXPECT_THAT(parseError("a:b%00"), HasSubstr("%00"));
  EXPECT_THAT(parseError(std::string_view("a:b\0c", 5)), HasSubstr("NUL"));
  EXPECT_THAT(parseError(std::string_view("a|b:\0", 5)), HasSubstr("NUL"));
}

TEST(ModelSpecTest, UnknownOptionsAreNamed) {
  static constexpr std::string_view Known[] = {"serdes", "connect"};
  EXPECT_FALSE(parse("pipe:x?connect=1s&timeout=2s").checkOptions(Known));
  Error E = parse("pipe:x?connect=1s&serde=json").checkOptions(Known);
  EXPECT_EQ(E.code(), ErrorCode::InvalidArgument);
  EXPECT_EQ(E.message(), "model spec 'pipe:x': unknown option 'serde'; known: "
                         "serdes, connect, timeout");
  EXPECT_EQ(parse("none?x=1").checkOptions({}).message(),
            "model spec 'none': unknown option 'x'; known: timeout");
}

TEST(ModelSpecTest, Durations) {
  using namespace std::chrono_literals;
  struct Case {
    const char *Text;
    Duration Value;
  };
  for (const Case &C : {
           Case{"5s", 5s},
           Case{"200ms", 200ms},
           Case{"50us", 50us},
           Case{"10ns", 10ns},
           Case{"2m", 2min},
           Case{"0s", 0s},
           Case{"inf", Duration::max()},
           Case{"9223372036854775807ns", Duration::max()},
       }) {
    Expected<Duration> D =
        parse("x:y?t=" + std::string(C.Text)).duration("t", 1s);
    ASSERT_TRUE(D) << D.message();
    EXPECT_EQ(*D, C.Value) << C.Text;
  }
  EXPECT_EQ(*parse("x:y").duration("t", 7s), 7s);
  for (std::string Text :
       {"", "5", "s", "-5s", "+5s", "5 s", " 5s", "5S", "1.5s", "5sec", "1h",
        "infinite", "9223372036854775808ns", "99999999999999999999s",
        "9223372037s"}) {
    Expected<Duration> D = parse("x:y?t=" + Text).duration("t", 1s);
    EXPECT_EQ(D.code(), ErrorCode::InvalidArgument) << Text;
    EXPECT_EQ(D.message(),
              "model spec 'x:y': option 't': expected a duration such as 5s, "
              "200ms, 50us, 10ns, 2m or inf, found '" +
                  Text + "'");
  }
}

TEST(ModelSpecTest, Bytes) {
  struct Case {
    const char *Text;
    std::size_t Value;
  };
  for (const Case &C : {
           Case{"0", 0},
           Case{"65536", 65536},
           Case{"7B", 7},
           Case{"64KiB", 65536},
           Case{"16MiB", std::size_t(16) << 20},
           Case{"3GiB", std::size_t(3) << 30},
       }) {
    Expected<std::size_t> Size =
        parse("x:y?n=" + std::string(C.Text)).bytes("n", 1);
    ASSERT_TRUE(Size) << Size.message();
    EXPECT_EQ(*Size, C.Value) << C.Text;
  }
  EXPECT_EQ(*parse("x:y").bytes("n", 7), 7U);
  for (std::string Text : {"", "KiB", "-1", "1kB", "1K", "1 KiB", "0x10",
                           "9223372036854775808", "8589934592GiB"}) {
    Expected<std::size_t> Size = parse("x:y?n=" + Text).bytes("n", 1);
    EXPECT_EQ(Size.code(), ErrorCode::InvalidArgument) << Text;
    EXPECT_THAT(std::string(Size.message()),
                HasSubstr("64KiB, 16MiB or 1GiB, found '" + Text + "'"));
  }
}

TEST(ModelSpecTest, TransportOptions) {
  Expected<TransportOptions> Default = transportOptions(parse("pipe:x"));
  ASSERT_TRUE(Default);
  EXPECT_EQ(Default->ConnectTimeout, std::chrono::seconds(30));
  EXPECT_EQ(Default->MaxMessage, std::size_t(1) << 30);
  Expected<TransportOptions> Given =
      transportOptions(parse("pipe:x?connect=2s&max-message=1MiB"));
  ASSERT_TRUE(Given);
  EXPECT_EQ(Given->ConnectTimeout, std::chrono::seconds(2));
  EXPECT_EQ(Given->MaxMessage, std::size_t(1) << 20);
  EXPECT_EQ(transportOptions(parse("pipe:x?connect=2")).code(),
            ErrorCode::InvalidArgument);
  EXPECT_EQ(transportOptions(parse("pipe:x?max-message=big")).code(),
            ErrorCode::InvalidArgument);
}
