//===- gRPCModelRunner.cpp - A model behind gRPC --------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/Runners/gRPCModelRunner.h"

#include "Core/InvalidSpec.h"
#include "GRPC/GRPCSpec.h"

using namespace MLBridge;
using namespace MLBridge::GRPC;

gRPCModelRunner::gRPCModelRunner(std::string Address,
                                 std::unique_ptr<BaseSerDes> Codec,
                                 const gRPCOptions &Options)
    : InterProcessModelRunner(createGRPCTransport(std::move(Address), Options),
                              std::move(Codec), Options.ConnectTimeout) {}

//===----------------------------------------------------------------------===//
// Specs
//===----------------------------------------------------------------------===//

static Expected<std::unique_ptr<BaseSerDes>>
codecOf(const ModelSpec &Spec, const SerDesFactory &Formats, SerDes::Side Our) {
  Expected<std::string> Name = serDesOf(Spec, Formats);
  if (!Name)
    return Name.takeError();
  return Formats.create(*Name, Our);
}

static Expected<gRPCOptions> optionsOf(const ModelSpec &Spec) {
  gRPCOptions Options;
  Expected<TransportOptions> Common = transportOptions(Spec);
  if (!Common)
    return Common.takeError();
  static_cast<TransportOptions &>(Options) = *Common;
  Expected<gRPCCredentials> Credentials = credentialsOf(Spec);
  if (!Credentials)
    return Credentials.takeError();
  Options.Credentials = std::move(*Credentials);
  Expected<Duration> Keepalive = Spec.duration("keepalive", Options.Keepalive);
  if (!Keepalive)
    return Keepalive.takeError();
  Options.Keepalive = *Keepalive;
  Expected<std::string> Method = methodOf(Spec);
  if (!Method)
    return Method.takeError();
  Options.Method = std::move(*Method);
  const std::string_view Call =
      Spec.option("call", Options.Method.empty() ? "stream" : "unary");
  if (Call != "stream" && Call != "unary")
    return invalidSpec(Spec,
                       "option 'call': expected stream or unary, found '" +
                           std::string(Call) + "'");
  if (Call == "stream" && !Options.Method.empty())
    return invalidSpec(Spec, "option 'call': expected unary, because a method "
                             "of your own service is called once for each "
                             "request; found stream");
  if (Call == "unary")
    Options.Style = gRPCOptions::Call::Unary;
  return Options;
}

static Error check(const ModelSpec &Spec) {
  static constexpr std::string_view Known[] = {
      "serdes", "connect", "max-message", "tls",     "cert",
      "key",    "call",    "keepalive",   "service", "method"};
  if (Error E = addressOf(Spec).takeError())
    return E;
  if (Error E = Spec.checkOptions(Known))
    return E;
  return optionsOf(Spec).takeError();
}

static Expected<gRPCParts>
partsOf(const ModelSpec &Spec, const SerDesFactory &Formats, SerDes::Side Our) {
  Expected<std::string> Address = addressOf(Spec);
  if (!Address)
    return Address.takeError();
  Expected<gRPCOptions> Options = optionsOf(Spec);
  if (!Options)
    return Options.takeError();
  Expected<std::unique_ptr<BaseSerDes>> Codec = codecOf(Spec, Formats, Our);
  if (!Codec)
    return Codec.takeError();
  return gRPCParts{std::move(*Address), std::move(*Codec), std::move(*Options)};
}

Expected<gRPCParts> MLBridge::parseGRPC(std::string_view Text,
                                        const SerDesFactory &Formats,
                                        SerDes::Side Our) {
  Expected<ModelSpec> Spec = ModelSpec::parse(Text);
  if (!Spec)
    return Spec.takeError();
  if (Spec->Scheme != "grpc" && Spec->Scheme != "grpc+unix")
    return invalidSpec(*Spec, "expected grpc://HOST:PORT or grpc+unix:PATH");
  if (Error E = check(*Spec))
    return E;
  return partsOf(*Spec, Formats, Our);
}

static Expected<std::unique_ptr<MLModelRunner>>
make(const ModelSpec &Spec, const RunnerFactory &Factory) {
  Expected<gRPCParts> Parts =
      partsOf(Spec, Factory.formats(), SerDes::Side::Compiler);
  if (!Parts)
    return Parts.takeError();
  if (!Spec.option("connect", {}).data())
    Parts->Options.ConnectTimeout = Factory.connectTimeout();
  return std::make_unique<gRPCModelRunner>(
      std::move(Parts->Address), std::move(Parts->Codec), Parts->Options);
}

void MLBridge::addGRPC(RunnerFactory &Factory) {
  Factory.add({"grpc",
               "grpc://HOST:PORT?serdes=protobuf&connect=30s&"
               "max-message=1GiB&call=stream|unary&keepalive=10s&tls=CA.pem&"
               "cert=OURS.pem&key=OURS.key&service=my.Service&method=Method: "
               "a model on this machine or another",
               make, /*IsDecorator=*/false, check});
  Factory.add({"grpc+unix",
               "grpc+unix:PATH: the same, through a socket of this machine",
               make, /*IsDecorator=*/false, check});
}
