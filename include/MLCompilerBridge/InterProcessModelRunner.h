//===- InterProcessModelRunner.h - A model in another process ---*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// InterProcessModelRunner: any SerDes over any Transport. A new transport or
/// SerDes needs no runner of its own.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_INTERPROCESSMODELRUNNER_H
#define MLCOMPILERBRIDGE_INTERPROCESSMODELRUNNER_H

#include "MLCompilerBridge/BaseSerDes.h"
#include "MLCompilerBridge/MLModelRunner.h"
#include "MLCompilerBridge/Transport.h"

namespace MLBridge {

class PrivateCopy;

/// Asks a model in another process. The first question meets the peer (it may
/// start later than we do); so does the first question after an error, since a
/// session in which a question was given up is never used again.
class InterProcessModelRunner : public MLModelRunner {
public:
  InterProcessModelRunner(
      std::unique_ptr<Transport> Channel, std::unique_ptr<BaseSerDes> Codec,
      Duration ConnectTimeout = TransportOptions().ConnectTimeout);
  ~InterProcessModelRunner() override;

  /// Meets the peer now rather than at the first question.
  Error connect(const AdviceSpec &Wanted = AdviceSpec::any());
  std::string describe() const override;

protected:
  Expected<Advice> evaluateUntyped(const FeatureSet &Features,
                                   const AdviceSpec &Wanted,
                                   Deadline Until) override;

private:
  std::unique_ptr<Transport> Channel;
  std::unique_ptr<BaseSerDes> Codec;
  Duration ConnectTimeout;
  /// Of answers in memory that the peer can write to, for a SerDes that cannot
  /// read there.
  std::unique_ptr<PrivateCopy> Copy;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_INTERPROCESSMODELRUNNER_H
