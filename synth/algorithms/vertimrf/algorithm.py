"""VertiMRF's descriptor and its `[vertimrf]` table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Unpack

from mpc_protocols.options import option
from synth.algorithm import NO_CLAIM, SOUND, Algorithm, Promise, PromiseWithReserved, Reporting
from synth.algorithms.privmrf.algorithm import PrivMrf, PrivMrfConfig

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mpc_protocols.functionality import Adjacency, MarginalOracle, Observe, Reporter, Reports
    from synth.algorithms.vertimrf.encoders.plan import EncodedPlan
    from synth.algorithms.vertimrf.encoders.reports import Encoder
    from synth.algorithms.vertimrf.plan import VertiMrfPlan
    from synth.domain import Domain
    from synth.run import Measured, Synthesis
    from synth.workload import Workload

ON_SHARES: Final = "mpc"
RESPONSES: Final = "fo"
SKETCHES: Final = "fm"
ALTERNATIVE: Final = f'[vertimrf] encoder = "{ON_SHARES}"'


@dataclass(frozen=True)
class VertiMrfConfig(PrivMrfConfig):
    """The `[vertimrf]` table of a study. encoder: how marginals across owners are counted."""

    encoder: str = option(
        ON_SHARES,
        "word",
        "across owners: counts on shares; research: randomised responses, sketches",
        words=(ON_SHARES, RESPONSES, SKETCHES),
    )


class VertiMrf(Algorithm["VertiMrfConfig", "VertiMrfPlan | EncodedPlan"]):
    """VertiMRF with marginals on shares: the structure inside each owner's columns first, then across owners.

    For research with encoded columns, as the paper has it: owners report once (`synth.algorithms.vertimrf.encoders`).
    """

    name = "vertimrf"
    title = "VertiMRF"
    rank = 5
    summary = "VertiMRF is PrivMRF for columns of several owners: what depends inside an owner's columns comes first"
    config = VertiMrfConfig
    left_out = "no graph will join its columns"
    partitions = ("vertical",)
    reserves = True

    def claim(self, config: VertiMrfConfig) -> str:
        if config.encoder == SKETCHES:
            return f"{NO_CLAIM}: the leader can read whole rows off the owners' sketches, and owners know the hash of every row"
        if config.encoder == RESPONSES:
            return (
                "every owner's report, and so everything that was released, is together (epsilon, delta)-differentially "
                "private towards everybody, the leader and other owners included, for one record's values; who is in the data "
                "is public"
            )
        return SOUND

    def alternative(self, config: VertiMrfConfig) -> str | None:
        return None if config.encoder == ON_SHARES else ALTERNATIVE

    def sound(self, config: VertiMrfConfig) -> bool:
        return config.encoder != SKETCHES

    def misfit(self, config: VertiMrfConfig, adjacency: Adjacency, aligned: bool) -> str | None:
        if config.encoder == ON_SHARES or (adjacency == "replace" and aligned):
            return None
        return (
            f'with encoder = "{config.encoder}" is about aligned rows whose number is public: it needs [privacy] adjacency = '
            f'"replace" and [alignment] method = "row-order"; use {ALTERNATIVE} for any other'
        )

    def views(self, config: VertiMrfConfig) -> tuple[tuple[str, str, str], ...]:
        if config.encoder == SKETCHES:
            return (
                (
                    "The leader, and whoever sees the sketches",
                    "Whole rows, read off the owners' sketches: values of all columns of real people.",
                    "Nothing is promised.",
                ),
                (
                    "Each owner",
                    "The hash of every row under every key: of any sketch it sees, which rows are not in it.",
                    "Nothing is promised.",
                ),
                (
                    "Recipients of the results",
                    "The table and the model, which are made of sketches that reveal rows.",
                    "Nothing is promised.",
                ),
            )
        if config.encoder == RESPONSES:
            return (
                (
                    "The leader",
                    "Each owner's noisy marginals, and every code of every row as a randomised response: what (epsilon, delta) "
                    "covers; how many rows there are.",
                    "Any true code. Who is in the data is public.",
                ),
                (
                    "Owners and other parties",
                    "The results, and how many rows there are.",
                    "Another owner's columns, but for what (epsilon, delta) covers.",
                ),
                (
                    "Recipients of the results",
                    "The table, the model and this report: what (epsilon, delta) covers.",
                    "Everything else but who is in the data, which is public.",
                ),
            )
        return ()

    def expects(self, plan: VertiMrfPlan | EncodedPlan, rows: int) -> str | None:
        if plan.config.encoder != SKETCHES:
            return None
        from synth.algorithms.vertimrf.encoders.plan import EncodedPlan
        from synth.algorithms.vertimrf.encoders.sketches import Sketches

        assert isinstance(plan, EncodedPlan)
        readable = Sketches(plan).readable_rows(rows)
        return (
            f"whoever holds the sketches can read about {readable:,.0f} of {rows:,} rows off them exactly, less some 5 to 20 % "
            "in which a maximum is tied"
        )

    def adaptive(self, config: VertiMrfConfig) -> bool:
        return config.encoder == ON_SHARES

    def plan(
        self,
        domain: Domain,
        workload: Workload,
        config: VertiMrfConfig,
        **promise: Unpack[PromiseWithReserved],
    ) -> VertiMrfPlan | EncodedPlan:
        if config.encoder != ON_SHARES:
            from synth.algorithms.vertimrf.encoders.plan import encoded_plan

            promised: Promise = {
                "epsilon": promise["epsilon"],
                "delta": promise["delta"],
                "adjacency": promise["adjacency"],
                "unit_rows": promise.get("unit_rows", 1),
            }
            return encoded_plan(domain, workload, config, **promised)
        from synth.algorithms.vertimrf.plan import plan

        return plan(domain, workload, config, **promise)

    def small_share(
        self, plan: VertiMrfPlan | EncodedPlan, measurements: Sequence[Measured], noisy_total: float
    ) -> float:
        from synth.algorithms.privmrf.loop import small_share
        from synth.algorithms.vertimrf.plan import VertiMrfPlan

        return small_share(plan, noisy_total) if isinstance(plan, VertiMrfPlan) else 0.0

    def completed(self, plan: VertiMrfPlan | EncodedPlan, event: Mapping[str, Any]) -> Mapping[str, Any]:
        from synth.algorithms.vertimrf.plan import VertiMrfPlan

        return event if isinstance(plan, VertiMrfPlan) else plan.completed(event)

    def asks(self, plan: VertiMrfPlan | EncodedPlan) -> str:
        from synth.algorithms.vertimrf.plan import VertiMrfPlan

        if isinstance(plan, VertiMrfPlan):
            return PrivMrf().asks(plan)
        return "of each owner one report: noisy marginals of its own columns, and " + (
            "a randomised response for each code of each row"
            if plan.config.encoder == RESPONSES
            else "sketches of the rows with each value"
        )

    def run(self, oracle: MarginalOracle, plan: VertiMrfPlan | EncodedPlan, observe: Observe) -> Synthesis:
        from synth.algorithms.vertimrf import loop
        from synth.algorithms.vertimrf.plan import VertiMrfPlan

        assert isinstance(plan, VertiMrfPlan)
        return loop.run(oracle, plan, observe)

    def reporting(self, config: VertiMrfConfig) -> Encoded | None:
        return None if config.encoder == ON_SHARES else Encoded()


class Encoded(Reporting["VertiMrfPlan | EncodedPlan"]):
    """One report of each owner: its own marginals, and its columns as responses or sketches."""

    def reporter(self, plan: VertiMrfPlan | EncodedPlan) -> Reporter:
        """See `Reporting`."""
        from synth.algorithms.vertimrf.encoders.plan import EncodedPlan
        from synth.algorithms.vertimrf.encoders.reports import EncodedReporter

        assert isinstance(plan, EncodedPlan)
        return EncodedReporter(plan, encoder_of(plan))

    def conclude(self, reports: Reports, plan: VertiMrfPlan | EncodedPlan, observe: Observe) -> Synthesis:
        """See `Reporting`."""
        from synth.algorithms.vertimrf.encoders.plan import EncodedPlan
        from synth.algorithms.vertimrf.encoders.reports import conclude

        assert isinstance(plan, EncodedPlan)
        return conclude(plan, encoder_of(plan), reports, observe)


def encoder_of(plan: EncodedPlan) -> Encoder:
    """How the columns are encoded."""
    if plan.config.encoder == RESPONSES:
        from synth.algorithms.vertimrf.encoders.responses import Responses

        return Responses(plan)
    from synth.algorithms.vertimrf.encoders.sketches import Sketches

    return Sketches(plan)


ALGORITHM = VertiMrf()
