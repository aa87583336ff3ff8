//===- examples/own-serdes.cpp - A SerDes of your own -----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A message format that writes each number as a line of text, `name value`. The
// runner and the server use it like the library's own formats, because
// transports do not depend on the contents of messages.
//
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Runners/PipeModelRunner.h"
#include "MLCompilerBridge/Transport/ModelServer.h"

#include <cstdio>
#include <cstring>
#include <sstream>
#include <thread>

using namespace MLBridge;

namespace {

class LinesSerDes final : public BaseSerDes {
public:
  std::string_view name() const override { return "lines"; }
  std::uint64_t layout() const override { return Messages; }

  Expected<std::size_t> getMaxSerializedSize() override {
    std::ostringstream Lines;
    for (const TensorView &T : Features) {
      Expected<double> Value = Advice({&T, 1}).get<double>();
      if (!Value)
        return Value.takeError();
      Lines << T.Name << ' ' << *Value << '\n';
    }
    Text = Lines.str();
    return Text.size();
  }
  Expected<std::size_t> getSerializedData(Span<std::byte> Out) override {
    std::memcpy(Out.data(), Text.data(), Text.size());
    return Text.size();
  }

protected:
  Expected<Span<const TensorView>>
  deserializeUntyped(Span<const std::byte> Message,
                     const AdviceSpec &) override {
    std::istringstream Lines(std::string(
        reinterpret_cast<const char *>(Message.data()), Message.size()));
    std::string Name;
    double Value;
    ++Messages;
    Received.clear();
    while (Lines >> Name >> Value)
      Received.set(Name, Value);
    if (!Lines.eof())
      return Error(ErrorCode::Malformed, "expected a number for " + Name);
    return Received.tensors();
  }

private:
  std::string Text;
  FeatureSet Received;
  std::uint64_t Messages = 0;
};

} // namespace

int main() {
  ModelServerOptions Options;
  Options.Formats.add<LinesSerDes>("lines", "numbers as lines of text");
  auto Server = ModelServer::listen("/tmp/own-serdes", Options);
  if (!Server)
    return std::fprintf(stderr, "%s\n", Server.takeError().str().c_str()), 1;
  std::thread Model([&] {
    if (auto Asked = (*Server)->next(Deadline::in(std::chrono::seconds(10))))
      (void)bool((*Server)->reply(Asked->Features)); // Reply with the features.
  });
  PipeModelRunner Runner("/tmp/own-serdes", std::make_unique<LinesSerDes>());
  Runner.populateFeatures(std::pair{"callee_size", 12});
  std::printf("the model received %d\n", Runner.evaluate<int>());
  Model.join();
}
