# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The model that estimates selectivities.

The model first evaluates each term with the summaries of its expression, and on a
sample of the table's rows. A small network then corrects this estimate. It learns when
the summaries are wrong, and by how much (compare Kipf et al., "Learned Cardinalities",
CIDR 2019, whose networks also see which rows of a sample satisfy a condition).
"""

from collections.abc import Mapping
from dataclasses import fields
from math import log
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from mlbridge.export import FeatureSpec

from .settings import LearningOptions
from .synopsis import BUCKETS, QUANTILES, SAMPLE, Synopsis

LITERALS, TRIGRAMS = 8, 8
"""The numbers of hashes for each term, as in Statement.h and Rewrite.c."""
OPERATORS = 17
"""The number of constants of TermOperator in Statement.h."""
OTHER, EQUAL, DIFFERENT, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL = range(7)
BETWEEN, NOT_BETWEEN, IN, NOT_IN, LIKE, NOT_LIKE, GLOB, NOT_GLOB = range(7, 15)
IS_NULL, NOT_NULL = 15, 16
TEXT, LIST, COLUMN = 2, 3, 4
"""Constants of OperandKind."""
PRIOR = 8.0
"""The weight of the summaries' estimate, as a number of rows of the sample."""
INPUTS = 12 + OPERATORS
NO_ADVICE = -1.0
ASSUMED_EQUAL, ASSUMED = 0.25, 0.93
"""SQLite's assumed selectivity of a column's equality with a literal, and of any other
term."""
DOUBT = 0.8
"""The expected error, as a logarithm, above which a term counts as unknown."""

_SETS = {
    "other": (OTHER,),
    "equal": (EQUAL, DIFFERENT, IN, NOT_IN),
    "order": (LESS, LESS_EQUAL, GREATER, GREATER_EQUAL, BETWEEN, NOT_BETWEEN),
    "less": (LESS, LESS_EQUAL),
    "below": (LESS,),
    "above": (GREATER,),
    "greater": (GREATER, GREATER_EQUAL),
    "between": (BETWEEN, NOT_BETWEEN),
    "list": (IN, NOT_IN),
    "like": (LIKE, NOT_LIKE, GLOB, NOT_GLOB),
    "negated": (DIFFERENT, NOT_BETWEEN, NOT_IN, NOT_LIKE, NOT_GLOB),
    "not in": (NOT_IN,),
    "null": (IS_NULL,),
    "not null": (NOT_NULL,),
}
"""Sets of operators, by name."""

Flags = Mapping[str, Tensor]
"""Maps each set to float [n]: 1 for the terms with an operator of the set."""


def _sets() -> Tensor:
    """Returns a row for each operator: its number and its sets as one-hot vectors."""
    found = torch.zeros(OPERATORS, len(_SETS))
    for i, operators in enumerate(_SETS.values()):
        found[list(operators), i] = 1
    return torch.cat([torch.eye(OPERATORS), found], dim=1)


class Terms(NamedTuple):
    """The description of n terms before the network runs.

    Attributes:
        inputs: the inputs of the network, float [n, INPUTS].
        base: the logarithms of the estimates without the network, float [n].
        known: 1 for each term of a known expression, float [n].
        indexed: 1 for each term for which SQLite can use an index, float [n].
    """

    inputs: Tensor
    base: Tensor
    known: Tensor
    indexed: Tensor


class SelectivityModel(nn.Module):
    """Estimates the selectivity of each term of a statement.

    A term's selectivity is its share of the rows that satisfy all earlier terms on the
    same table.
    """

    features: ClassVar[tuple[FeatureSpec, ...]] = (
        FeatureSpec("tables", "int32", ("n",), low=0, high=7),
        FeatureSpec("columns", "int32", ("n", 2)),
        FeatureSpec("expressions", "int32", ("n",)),
        FeatureSpec("operators", "int32", ("n",), low=0, high=OPERATORS - 1),
        FeatureSpec("operands", "int32", ("n",), low=0, high=4),
        FeatureSpec("values", "double", ("n", 4)),
        FeatureSpec("literals", "int32", ("n", LITERALS)),
        FeatureSpec("trigrams", "int32", ("n", TRIGRAMS), low=-1, high=BUCKETS - 1),
    )

    keys: Tensor
    texts: Tensor
    indexed: Tensor
    places: Tensor
    quantiles: Tensor
    frequent: Tensor
    shares: Tensor
    rare: Tensor
    nulls: Tensor
    trigrams: Tensor
    ranks: Tensor
    present: Tensor
    sets: Tensor
    masks: Tensor

    def __init__(self, synopsis: Synopsis, options: LearningOptions) -> None:
        super().__init__()
        for field in fields(Synopsis):
            array = torch.from_numpy(getattr(synopsis, field.name))
            self.register_buffer(field.name, array)
        self.present = self.present.reshape(-1, SAMPLE // 32)
        self.trigrams = self.trigrams.reshape(-1)
        self.unsure, self.share = options.unsure, log(options.share)
        hidden = options.hidden
        for name, mask in {
            "sets": _sets(),
            "masks": torch.tensor(1, dtype=torch.int32)
            << torch.arange(32, dtype=torch.int32),
        }.items():
            self.register_buffer(name, mask)
        self.layers = nn.Sequential(
            nn.Linear(INPUTS, hidden),
            nn.Tanh(),
            nn.Linear(hidden, hidden),
            nn.Tanh(),
            nn.Linear(hidden, 2),
        )
        # At first, the network hardly changes the summaries' estimates.
        last = self.layers[-1]
        assert isinstance(last, nn.Linear)
        with torch.no_grad():
            last.weight.mul_(0.1)
            last.bias.zero_()

    def forward(
        self,
        tables: Tensor,
        columns: Tensor,
        expressions: Tensor,
        operators: Tensor,
        operands: Tensor,
        values: Tensor,
        literals: Tensor,
        trigrams: Tensor,
    ) -> dict[str, Tensor]:
        """Returns selectivities, float [1, n]. -1 leaves a term to SQLite.

        All inputs have a first dimension of size 1.
        """
        terms = self.describe(
            *(tables[0], columns[0], expressions[0], operators[0], operands[0]),
            *(values[0], literals[0], trigrams[0]),
        )
        found = self.layers(terms.inputs)
        logs = torch.clamp(terms.base + found[:, 0], max=0.0)
        error = torch.exp(found[:, 1])
        equal = (operators[0] == EQUAL) & (expressions[0] == 0)
        assumed = torch.where(equal, log(ASSUMED_EQUAL), log(ASSUMED))
        # Use an estimate only if it differs from SQLite's assumption by more than its
        # expected error.
        sure = (torch.abs(logs - assumed) > self.unsure * error).to(logs.dtype)
        sure = sure * terms.known * (1 - terms.indexed)
        sure = sure * pays(tables[0], logs, error, sure, terms, self.share)
        advice = torch.exp(logs) * sure + NO_ADVICE * (1 - sure)
        return {"selectivities": advice.unsqueeze(0)}

    def describe(
        self,
        tables: Tensor,
        columns: Tensor,
        expressions: Tensor,
        operators: Tensor,
        operands: Tensor,
        values: Tensor,
        literals: Tensor,
        trigrams: Tensor,
    ) -> "Terms":
        """Evaluates terms without the network."""
        same = (
            (columns[:, :1] == self.keys[:, 0])
            & (columns[:, 1:] == self.keys[:, 1])
            & (expressions.unsqueeze(1) == self.keys[:, 2])
        ).to(torch.float32)
        index = torch.argmax(same, dim=1)
        row = self.sets[operators.to(torch.int64)]
        kind = row[:, :OPERATORS]
        flags = {name: row[:, OPERATORS + i] for i, name in enumerate(_SETS)}
        text = self.texts[index]
        place = self.places[index]
        known = self._known(same.amax(dim=1), flags, operands, text, place)
        # For each term, the number of quantiles below the value, and up to it: [n].
        quantiles = self.quantiles[index]
        below, upto = _position(quantiles, values[:, :1], values[:, 1:2])
        _, second = _position(quantiles, values[:, 2:3], values[:, 3:4])
        low = flags["above"] * (upto - below) + below
        low = torch.where(flags["less"] > 0, torch.full_like(low, -0.5), low)
        high = torch.where(flags["greater"] > 0, QUANTILES, upto)
        high = torch.where(flags["below"] > 0, below, high)
        high = torch.where(flags["between"] > 0, second, high)
        # Indices into the tables of trigrams. A table's last row stands for no trigram.
        bucket = torch.where(trigrams < 0, torch.full_like(trigrams, BUCKETS), trigrams)
        grams = place.unsqueeze(1) * (BUCKETS + 1) + bucket.to(torch.int64)
        summary, details = self._summary(
            index, flags, values, literals, grams, low, high
        )
        bits = self._bits(index, flags, grams, low, high)
        before, both = _conjunctions(tables, bits)
        own = bits.sum(dim=1)
        base = torch.log((both + PRIOR * summary) / (before + PRIOR))
        first = (before >= SAMPLE).to(base.dtype)
        logs = torch.log(summary)
        base = first * logs + (1 - first) * base
        counts = torch.stack([own, before, both], dim=1)
        inputs = torch.cat(
            [
                *(kind, logs.unsqueeze(1), base.unsqueeze(1)),
                *(torch.log((counts + 0.5) / SAMPLE), details),
                *(first.unsqueeze(1), text.unsqueeze(1)),
            ],
            dim=1,
        )
        indexed = self.indexed[index] * (1 - flags["like"])
        return Terms(inputs, base, known, indexed)

    def _known(
        self,
        found: Tensor,
        flags: Flags,
        operands: Tensor,
        text: Tensor,
        place: Tensor,
    ) -> Tensor:
        """Returns 1 for each term that the summaries can estimate, and 0 otherwise.

        The summaries must contain the expression. The expression's values and the
        operand must both be texts, or both be numbers.
        """
        has_text = (operands == TEXT).to(torch.float32)
        fits = 1 - torch.abs(text - has_text)
        any_kind = ((operands == LIST) | (operands == COLUMN) | (operands == 0)).to(
            torch.float32
        )
        fits = torch.maximum(fits, any_kind)
        fits = fits * torch.maximum(1 - flags["like"], (place > 0).to(fits.dtype))
        return found * fits * (1 - flags["other"])

    def _summary(
        self,
        index: Tensor,
        flags: Flags,
        values: Tensor,
        literals: Tensor,
        grams: Tensor,
        low: Tensor,
        high: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Returns estimates by summaries, float [n], and other inputs, float [n, 5]."""
        nulls = self.nulls[index]
        given = 1 - nulls
        # For equality, use the share of the frequent value, or the mean share of values
        # that are not frequent.
        hits = (literals.unsqueeze(2) == self.frequent[index].unsqueeze(1)).to(
            torch.float32
        )
        share = torch.bmm(hits, self.shares[index].unsqueeze(2)).squeeze(2)
        hit = (share > 0).to(torch.float32)
        share = share + (1 - hit) * self.rare[index].unsqueeze(1)
        filled = (literals != 0).to(torch.float32)
        many = values[:, 0].to(torch.float32) / LITERALS * flags["list"]
        equal = (share * filled).sum(dim=1) * torch.clamp(many, min=1.0)
        order = torch.clamp(high - low, min=0.3) / QUANTILES * given
        shares = self.trigrams[grams]
        rarest = shares.amin(dim=1)
        like = rarest * given
        found = flags["equal"] * equal + flags["like"] * like + flags["order"] * order
        found = torch.minimum(found, given)
        negated = flags["negated"]
        found = negated * (given - found) + (1 - negated) * found
        found = found + flags["null"] * nulls + flags["not null"] * given
        details = torch.stack(
            [
                torch.log(rarest + 1e-5),
                torch.log(shares + 1e-5).mean(dim=1),
                (shares < 1).to(torch.float32).mean(dim=1),
                hit.amax(dim=1),
                torch.log(self.rare[index] + 1e-7) / 10,
            ],
            dim=1,
        )
        return torch.clamp(found, min=1e-6), details

    def _bits(
        self,
        index: Tensor,
        flags: Flags,
        grams: Tensor,
        low: Tensor,
        high: Tensor,
    ) -> Tensor:
        """Returns 1 for rows of the sample that satisfy a term, float [n, SAMPLE]."""
        ranks = self.ranks[index]
        valid = (ranks >= 0).to(torch.float32)
        order = ((ranks > low.unsqueeze(1)) & (ranks <= high.unsqueeze(1))).to(
            torch.float32
        )
        # For a list (IN), the matching rows are unknown, so assume that all rows match.
        likes, lists = flags["like"].unsqueeze(1), flags["list"].unsqueeze(1)
        orders = 1 - likes - lists
        found = likes * self._having(grams) + orders * order + lists * valid
        negated = (flags["negated"] - flags["not in"]).unsqueeze(1)
        found = valid * (negated + found - 2 * negated * found)
        nulls, given = flags["null"].unsqueeze(1), flags["not null"].unsqueeze(1)
        return found + nulls * (1 - valid) + given * valid

    def _having(self, grams: Tensor) -> Tensor:
        """Returns 1 for rows whose text has all trigrams, float [n, SAMPLE]."""
        found = self.present[grams]
        both = found[:, 0]
        for i in range(1, TRIGRAMS):
            both = both & found[:, i]
        bits = both.unsqueeze(2) & self.masks
        return (bits != 0).to(torch.float32).reshape(-1, SAMPLE)


def pays(
    tables: Tensor,
    logs: Tensor,
    error: Tensor,
    sure: Tensor,
    terms: Terms,
    share: float,
) -> Tensor:
    """Returns 1 if estimates of the terms probably make the statement faster, else 0.

    SQLite assumes that a row found through an index costs as much as a row of a scan,
    but the row from an index takes several times as long. Slightly better estimates
    therefore often lead to a slower plan. Estimates help if the terms on a table accept
    only a small share of the rows. This share must not exceed the share of any indexed
    terms, which SQLite can estimate. Estimates do not help if a term on another table
    is unknown, because it may accept still fewer rows.

    Args:
        tables: the table of each term, int32 [n].
        logs: the logarithms of the estimates, float [n].
        error: the expected errors of the estimates, float [n].
        sure: 1 for each term that would have advice, float [n].
        terms: the description of the terms.
        share: the logarithm of the largest share of rows for which estimates help.
    """
    same = (tables.unsqueeze(1) == tables.unsqueeze(0)).to(logs.dtype)
    sums = (same @ (sure * logs).unsqueeze(1)).squeeze(1)
    known = terms.known * terms.indexed
    ours = sums.amin(dim=0)
    theirs = (same @ (known * logs).unsqueeze(1)).squeeze(1).amin(dim=0)
    doubtful = (1 - sure) * (1 - terms.indexed) * (error > DOUBT).to(sure.dtype)
    doubtful = torch.maximum(doubtful, 1 - terms.known)
    doubtful = (doubtful * (sums > ours + 1e-3)).amax(dim=0)
    return ((ours <= share) & (ours <= theirs) & (doubtful == 0)).to(logs.dtype)


def _position(quantiles: Tensor, high: Tensor, low: Tensor) -> tuple[Tensor, Tensor]:
    """Returns how many quantiles are below a value, and how many are up to it."""
    first, second = quantiles[:, :, 0], quantiles[:, :, 1]
    less, same = first < high, first == high
    below = (less | (same & (second < low))).to(torch.float32).sum(dim=1)
    upto = (less | (same & (second <= low))).to(torch.float32).sum(dim=1)
    return below, upto


def _conjunctions(tables: Tensor, bits: Tensor) -> tuple[Tensor, Tensor]:
    """Returns, per term, how many sampled rows satisfy its table's earlier terms.

    Also returns how many of these rows satisfy the term itself: float [n] each.
    """
    count = tables.shape[0]
    place = torch.arange(count)
    same = tables.unsqueeze(1) == tables.unsqueeze(0)
    earlier = (same & (place.unsqueeze(0) < place.unsqueeze(1))).to(torch.float32)
    failed = 1 - bits
    violations = earlier @ failed
    before = (violations == 0).to(torch.float32)
    return before.sum(dim=1), (before * bits).sum(dim=1)
