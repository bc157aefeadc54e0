"""Privacy-loss distributions: the tightest accountant for mixtures and for sampled Gaussians.

The numerical work is dp-accounting's (docs/decisions/dp-accounting.md); it is imported when first
needed, since that takes half a second. All discretisation is pessimistic ("connect the dots",
Doroshenko, Ghazi, Kamath, Kumar & Manurangsi 2022), and what floating-point convolution may lose is
taken off delta first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.privacy.accounting import gaussian
from tacit.privacy.accounting.losses import GaussianLoss, Loss, PureLoss, leak, upward

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["delta", "epsilon"]

# The grid of losses has a step of this share of the root mean square loss of one run. Connecting
# dots adds at most step²/4 to a run's variance, so its root grows by 0.05²/8 < 0.1 %.
_STEP_PER_LOSS = 0.05
_WIDEST_STEP = 0.01
# Beyond a loss of e^200 nobody needs tightness, and exponentials overflow.
_LARGEST_LOSS = 200.0
# Beyond this the arrays outgrow memory and the rounding error below outgrows usual deltas.
_MOST_RUNS = 1_000_000
_RUNS_AT_ONCE = 10_000
_FEW_CELLS, _MOST_CELLS = 10_000, 250_000
_CLOSE = 1e-3
# Normal deviates beyond this have a probability below 1e-18.
_REACH = 8.8
# A convolution of n runs by Fourier transform errs by a few n·2^-53 in each tail probability sum.
_ERROR_PER_RUN = 2.0**-48
_LEAST_ERROR = 1e-13
_UP = 1 + 1e-12


def epsilon(losses: Sequence[Loss], delta: float) -> float:
    rest = delta - _error(losses)
    if rest <= leak(losses) or not _applies(losses):
        return math.inf
    return _refined(losses, lambda pld: float(pld.get_epsilon_for_delta(rest))) * _UP


def delta(losses: Sequence[Loss], epsilon: float) -> float:
    if not _applies(losses):
        return 1.0
    found = _refined(losses, lambda pld: float(pld.get_delta_for_epsilon(epsilon / _UP)))
    return min(1.0, max(found, 0.0) + _error(losses))


def _refined(losses: Sequence[Loss], read: Callable[[Any], float]) -> float:
    """What `read` finds on a grid that is fine enough: finer ones would change little.

    Where rare large losses decide (few runs at a small rate), a coarse grid is as good as the
    finest and far faster. Every grid is sound, so the least figure is taken.
    """
    parts = _join_gaussians(losses)
    finest, step = _steps(parts)
    found = read(_compose(parts, step))
    while step > finest:
        step = max(finest, step / 4)
        before, found = found, min(found, read(_compose(parts, step)))
        if found >= before * (1 - _CLOSE):
            break
    return math.inf if math.isnan(found) else found


def _error(losses: Sequence[Loss]) -> float:
    return _LEAST_ERROR + _ERROR_PER_RUN * sum(loss.count for loss in losses)


def _applies(losses: Sequence[Loss]) -> bool:
    parts = _join_gaussians(losses)
    runs = sum(loss.count for loss in parts)
    return 0 < runs <= _MOST_RUNS and all(_size(loss) <= _LARGEST_LOSS for loss in parts)


def _size(loss: Loss) -> float:
    return loss.mu**2 / 2 if isinstance(loss, GaussianLoss) else upward(loss.epsilon)


def _compose(losses: Sequence[Loss], step: float) -> Any:
    """The privacy-loss distribution of all losses together, in both directions."""
    composed: Any = None
    # Overflow in e^ε far outside the support gives 0 or 1 there, as it should.
    with np.errstate(all="ignore"):
        for loss in losses:
            one = _gaussian(loss, step) if isinstance(loss, GaussianLoss) else _pure(loss, step)
            many = _power(one, loss.count)
            composed = many if composed is None else composed.compose(many)
    return composed


def _power(one: Any, count: int) -> Any:
    """`count` runs of one; of many in two stages, which cuts the tails more closely."""
    if count <= _RUNS_AT_ONCE:
        return one if count == 1 else one.self_compose(count)
    root = math.isqrt(count)
    square = one.self_compose(root).self_compose(root)
    rest = count - root**2
    return square.compose(_power(one, rest)) if rest else square


def _join_gaussians(losses: Sequence[Loss]) -> list[Loss]:
    """All Gaussians without sampling as one, which is exact and saves convolutions."""
    plain: list[Loss] = [x for x in losses if isinstance(x, GaussianLoss) and x.sampling == 1]
    rest = [loss for loss in losses if loss not in plain]
    mu = gaussian.total(plain)
    return rest if not plain or mu is None else [GaussianLoss(mu), *rest]


def _steps(losses: Sequence[Loss]) -> tuple[float, float]:
    """The finest step worth trying, and the one to start with."""
    runs = sum(loss.count for loss in losses)
    variance = math.fsum(loss.count * _variance(loss) for loss in losses)
    width = max(high - low for low, high in map(_range, losses))
    finest = min(_WIDEST_STEP, _STEP_PER_LOSS * math.sqrt(variance / runs))
    finest = max(finest, width / _MOST_CELLS)
    return finest, max(finest, min(_WIDEST_STEP, width / _FEW_CELLS))


def _variance(loss: Loss) -> float:
    """About the second moment of one run's loss. It steers precision only, never soundness."""
    if isinstance(loss, PureLoss):
        return upward(loss.epsilon) ** 2
    square = loss.mu**2
    if square > 50:
        return square
    return min(square, math.log1p(loss.sampling**2 * math.expm1(square)))


def _gaussian(loss: GaussianLoss, step: float) -> Any:
    """A sampled Gaussian, its dots connected on the grid, when a unit is removed and when added.

    dp-accounting's `from_gaussian_mechanism` does the same point by point; the closed form here is
    faster and keeps more digits at tiny rates, and the tests compare the two.
    """
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution

    def connect(dots: Callable[..., NDArray[np.float64]], low: float, high: float) -> Any:
        first, last = math.floor(low / step), math.ceil(high / step)
        at = np.arange(first, last + 1) * step
        deltas = np.clip(dots(loss.mu, loss.sampling, at), 0.0, 1.0)
        deltas = np.minimum.accumulate(deltas)  # it falls, but for rounding
        return pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(step, first, last, deltas)

    low, high = _range(loss)
    removed = connect(_removed, low, high)
    if loss.sampling == 1:  # symmetric
        return privacy_loss_distribution.PrivacyLossDistribution(removed)
    added = connect(_added, -high, -low)
    return privacy_loss_distribution.PrivacyLossDistribution(removed, added)


def _range(loss: Loss) -> tuple[float, float]:
    """Where nearly all of a run's loss lies; what lies above is charged as a failure."""
    if isinstance(loss, PureLoss):
        return -upward(loss.epsilon), upward(loss.epsilon)
    end = _REACH * loss.mu + loss.mu**2 / 2
    return _mixed(loss.sampling, -end), _mixed(loss.sampling, end)


def _mixed(rate: float, loss: float) -> float:
    """ln(1 − q + q·e^loss), without overflow."""
    return loss if rate == 1 else float(np.logaddexp(math.log1p(-rate), math.log(rate) + loss))


def _removed(mu: float, rate: float, at: NDArray[np.float64]) -> NDArray[np.float64]:
    """Hockey stick of (1−q)N(0,1) + qN(μ,1) over N(0,1): q·δ(ln(1 + (e^ε−1)/q)) (sampling.md)."""
    inside = np.expm1(at) > -rate  # elsewhere the first is everywhere the larger: 1 − e^ε
    lifted = np.log1p(np.expm1(np.where(inside, at, 0.0)) / rate)
    return np.where(inside, rate * _hockey_stick(mu, lifted), -np.expm1(at))


def _added(mu: float, rate: float, at: NDArray[np.float64]) -> NDArray[np.float64]:
    """Hockey stick of N(0,1) over (1−q)N(0,1) + qN(μ,1) (sampling.md)."""
    rest = rate - (1 - rate) * np.expm1(at)  # 1 − e^ε(1−q)
    inside = rest > 0  # elsewhere the first is nowhere the larger
    safe = np.where(inside, rest, 1.0)
    lifted = at + math.log(rate) - np.log(safe)
    return np.where(inside, safe * _hockey_stick(mu, lifted), 0.0)


def _hockey_stick(mu: float, at: NDArray[np.float64]) -> NDArray[np.float64]:
    """`gaussian.hockey_stick` for many, also negative, epsilons."""
    from scipy.special import erfcx, ndtr

    t = at / mu - mu / 2
    mills = erfcx(np.maximum(t, 0.0) / math.sqrt(2)) - erfcx(np.maximum(t + mu, 0.0) / math.sqrt(2))
    tail = np.exp(-t * t / 2) / 2 * mills
    bulk = ndtr(-t) - np.exp(np.minimum(at, mu * mu)) * ndtr(-t - mu)
    sticks: NDArray[np.float64] = np.where(t > 0, tail, bulk)
    return sticks


def _pure(loss: PureLoss, step: float) -> Any:
    """The dominating pair of (ε, δ)-DP, its dots connected on the grid.

    dp-accounting's own `from_privacy_parameters` rounds each loss up to the grid, which costs up to
    one step per run; connecting the dots costs step² instead.
    """
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution

    epsilon = upward(loss.epsilon)
    ends = np.array([-epsilon / step, epsilon / step])
    grid = np.unique(np.concatenate([np.floor(ends), np.ceil(ends)])).astype(np.int64)
    if grid[-1] * step < epsilon:  # the division was rounded down
        grid = np.append(grid, grid[-1] + 1)
    dots = _response(epsilon, loss.delta, np.asarray(grid * step, dtype=np.float64))
    return privacy_loss_distribution.PrivacyLossDistribution(
        pld_pmf.create_pmf_pessimistic_connect_dots(step, grid, dots)
    )


def _response(epsilon: float, delta: float, at: NDArray[np.float64]) -> NDArray[np.float64]:
    """The hockey-stick divergence of randomised response, at each of `at`."""
    inside = np.maximum(0.0, -np.expm1(at - epsilon)) / (1 + math.exp(-epsilon))
    dots: NDArray[np.float64] = np.where(at < -epsilon, -np.expm1(at), inside)
    return delta + (1 - delta) * dots
