//===- SerDesFactoryTest.cpp - SerDes by name -----------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/SerDes/SerDesFactory.h"
#include "MLCompilerBridge/Extend/RunnerFactory.h"
#include "MLCompilerBridge/SerDes/BitstreamSerDes.h"
#include "support/EchoModel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace MLBridge;
using testing::HasSubstr;

namespace {

/// The bitstream under another name.
class RenamedSerDes final : public BaseSerDes {
public:
  std::string_view name() const override { return "renamed"; }
  Expected<std::size_t> getMaxSerializedSize() override {
    Inner.cleanUp();
    for (const TensorView &Feature : Features)
      Inner.setFeature(Feature);
    return Inner.getMaxSerializedSize();
  }
  Expected<std::size_t> getSerializedData(Span<std::byte> Out) override {
    return Inner.getSerializedData(Out);
  }

protected:
  Expected<Span<const TensorView>>
  deserializeUntyped(Span<const std::byte> Message,
                     const AdviceSpec &Wanted) override {
    return Inner.deserialize(Message, Wanted);
  }

private:
  BitstreamSerDes Inner;
};

TEST(SerDesFactory, KnowsTheFormatsOfCore) {
  EXPECT_EQ(SerDes::create(SerDes::Kind::Bitstream)->name(), "bitstream");
  EXPECT_EQ(SerDes::create(SerDes::Kind::JSON)->name(), "json");
  SerDesFactory Factory;
  for (const SerDesFactory::Format &F : Factory.formats()) {
    auto Made = Factory.create(F.Name, SerDes::Side::Model);
    ASSERT_TRUE(Made);
    EXPECT_EQ((*Made)->name(), F.Name);
    EXPECT_NE(F.Help, "");
  }
}

TEST(SerDesFactory, ErrorsNameTheKnownFormats) {
  auto Made = SerDesFactory().create("yaml", SerDes::Side::Compiler);
  EXPECT_EQ(Made.code(), ErrorCode::InvalidArgument);
  EXPECT_EQ(Made.message(), "unknown SerDes 'yaml'; known: bitstream, json");
}

TEST(SerDesFactory, LaterOnesReplaceEarlierOnes) {
  SerDesFactory Factory;
  std::size_t Before = Factory.formats().size();
  Factory.add<RenamedSerDes>("renamed", "first");
  Factory.add<RenamedSerDes>("renamed", "second");
  ASSERT_EQ(Factory.formats().size(), Before + 1);
  EXPECT_EQ(Factory.formats().back().Help, "second");
}

TEST(SerDesFactory, PassesTheSide) {
  SerDesFactory Factory;
  std::optional<SerDes::Side> Told;
  Factory.add({"asks", "",
               [&](SerDes::Side Our) -> Expected<std::unique_ptr<BaseSerDes>> {
                 Told = Our;
                 return std::make_unique<RenamedSerDes>();
               }});
  (void)Factory.create("asks", SerDes::Side::Compiler);
  EXPECT_EQ(Told, SerDes::Side::Compiler);
  (void)Factory.create("asks", SerDes::Side::Model);
  EXPECT_EQ(Told, SerDes::Side::Model);
}

TEST(SerDesFactory, OfARunnerFactoryReadsSpecs) {
  RunnerFactory Factory;
  Error Unknown = Factory.check("pipe:x?serdes=renamed");
  EXPECT_EQ(Unknown.code(), ErrorCode::InvalidArgument);
  EXPECT_THAT(Unknown.message(), HasSubstr("unknown SerDes 'renamed'"));
  Factory.formats().add<RenamedSerDes>("renamed", "");
  EXPECT_FALSE(Factory.check("pipe:x?serdes=renamed"));
  EXPECT_FALSE(Factory.check("fallback|shm:x?serdes=renamed"));
  EXPECT_THAT(Factory.check("none?serdes=renamed").message(),
              HasSubstr("known: timeout"));
}

TEST(SerDesFactory, OfAServerReadsHellos) {
  test::TemporaryDirectory Directory;
  std::string Name = Directory.path("model");
  RunnerFactory Factory;
  Factory.formats().add<RenamedSerDes>("renamed", "");
  const std::string Spec = "pipe:" + Name + "?serdes=renamed&timeout=10s";
  auto Ask = [&]() -> Expected<int> {
    auto Runner = Factory.create(Spec);
    if (!Runner)
      return Runner.takeError();
    (*Runner)->populateFeatures(std::pair{"x", 7});
    return (*Runner)->tryEvaluate<int>();
  };
  {
    test::EchoModel Refuses(Name);
    EXPECT_THAT(std::string(Ask().message()),
                HasSubstr("unknown SerDes 'renamed'; known: bitstream"));
  }
  ModelServerOptions Options;
  Options.Formats.add<RenamedSerDes>("renamed", "");
  test::EchoModel Speaks(Name, Options);
  Expected<int> Reply = Ask();
  ASSERT_TRUE(Reply) << Reply.takeError().str();
  EXPECT_EQ(*Reply, 7);
}

} // namespace
