"""Proximal policy optimisation (Schulman et al. 2017) that excludes masked steps.

The only file that uses torch. Input and output are plain data, so a checkpoint contains the complete state.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec
import numpy as np
import torch
from torch import nn
from torch.optim.adam import adam

from groundswell.experiments.chance import seed_of
from groundswell.experiments.query_mutation.episode import Floats
from groundswell.experiments.query_mutation.learning.choosing import Rollout
from groundswell.experiments.query_mutation.learning.policy import Layer, Policy, arrays, layers
from groundswell.experiments.query_mutation.learning.returns import advantages
from groundswell.experiments.query_mutation.learning.rules import Losses, Moments, Rules, State

TINY = 1e-8
BETAS, EPSILON = (0.9, 0.999), 1e-5
"""Parameters of Adam."""
_LEARNING = threading.Lock()
FEWEST = 2
"""Minimum number of steps: advantages are normalised by their standard deviation."""


def learn(
    state: State, rollouts: Sequence[Rollout], rules: Rules, *, seed: int, scale: float = 1.0
) -> tuple[State, Losses | None]:
    """The state after an update. `scale` multiplies the learning rate. With too few usable steps nothing changes."""
    batch = _batch(rollouts, rules, state.policy.skips)
    if batch is None:
        return msgspec.structs.replace(state, updates=state.updates + 1), None
    with _one_thread():
        return _learn(state, batch, rules, seed, scale)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Use one thread: results must not depend on the number of cores, and small networks do not gain from more.

    The number of threads is a setting of the process, so learners update one at a time.
    """
    with _LEARNING:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)


class _Batch(msgspec.Struct):
    """The usable steps."""

    seen: torch.Tensor
    actions: torch.Tensor
    log_probabilities: torch.Tensor
    advantages: torch.Tensor
    returns: torch.Tensor

    def __len__(self) -> int:
        return len(self.actions)


def _batch(rollouts: Sequence[Rollout], rules: Rules, skips: int) -> _Batch | None:
    usable = np.concatenate([np.asarray(rollout.usable, dtype=bool) for rollout in rollouts])
    if usable.sum() < FEWEST:
        return None
    gained = np.concatenate([advantages(each, rules.gamma, rules.gae_lambda) for each in rollouts])[usable]
    values = np.concatenate([np.asarray(each.values, dtype=np.float32) for each in rollouts])[usable]
    seen = np.concatenate([np.stack(each.seen) for each in rollouts])[usable, skips:]
    actions = np.concatenate([np.asarray(each.actions) for each in rollouts])[usable]
    likely = np.concatenate([np.asarray(each.log_probabilities, dtype=np.float32) for each in rollouts])[usable]
    return _Batch(*(torch.from_numpy(each) for each in (seen, actions, likely, gained, gained + values)))


def _learn(state: State, batch: _Batch, rules: Rules, seed: int, scale: float) -> tuple[State, Losses]:
    actor, critic = _network(state.policy.actor), _network(state.policy.critic)
    parameters = [*actor.parameters(), *critic.parameters()]
    optimiser = _Adam(parameters, rules.lr * scale, state)
    order = np.random.default_rng(seed_of("minibatches", seed, state.updates))
    seen: list[tuple[float, ...]] = []
    for _ in range(rules.ppo_epoch):
        for part in np.array_split(order.permutation(len(batch)), min(rules.num_mini_batch, len(batch) // FEWEST)):
            loss, told = _loss(actor, critic, batch, torch.from_numpy(part), rules)
            optimiser.forget_gradients()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(parameters, rules.max_grad_norm)
            optimiser.step()
            seen.append(told)
    after = optimiser.state(Policy(_layers(actor), _layers(critic), state.policy.skips), state.updates + 1)
    return after, Losses(*(float(each) for each in np.mean(seen, axis=0)))


def _loss(
    actor: nn.Sequential, critic: nn.Sequential, batch: _Batch, part: torch.Tensor, rules: Rules
) -> tuple[torch.Tensor, tuple[float, ...]]:
    seen, gained = batch.seen[part], batch.advantages[part]
    gained = (gained - gained.mean()) / (gained.std() + TINY)
    chosen = torch.distributions.Categorical(logits=actor(seen))
    ratio = torch.exp(chosen.log_prob(batch.actions[part]) - batch.log_probabilities[part])  # type: ignore[no-untyped-call]
    held = torch.clamp(ratio, 1 - rules.clip_param, 1 + rules.clip_param)
    policy = -torch.min(gained * ratio, gained * held).mean()
    value = nn.functional.mse_loss(critic(seen).squeeze(-1), batch.returns[part])
    entropy = chosen.entropy().mean()  # type: ignore[no-untyped-call]
    clipped = ((ratio - 1).abs() > rules.clip_param).float().mean()
    loss = policy + rules.value_loss_coef * value - rules.entropy_coef * entropy
    return loss, (policy.item(), value.item(), entropy.item(), clipped.item())


def _network(found: tuple[Layer, ...]) -> nn.Sequential:
    parts: list[nn.Module] = []
    for weights, biases in arrays(found):
        linear = nn.Linear(weights.shape[1], weights.shape[0])
        with torch.no_grad():
            linear.weight.copy_(torch.from_numpy(weights.copy()))
            linear.bias.copy_(torch.from_numpy(biases.copy()))
        parts += [linear, nn.Tanh()]
    return nn.Sequential(*parts[:-1])


def _layers(network: nn.Sequential) -> tuple[Layer, ...]:
    found: list[tuple[Floats, Floats]] = [
        (part.weight.detach().numpy(), part.bias.detach().numpy()) for part in network if isinstance(part, nn.Linear)
    ]
    return layers(found)


class _Adam:
    """PyTorch's Adam with a state of plain data.

    It calls the function behind `torch.optim.Adam`. The class itself imports PyTorch's compiler, which takes seconds.
    """

    def __init__(self, parameters: list[nn.Parameter], rate: float, state: State) -> None:
        self._parameters, self._rate = parameters, rate
        self._steps = [torch.tensor(float(state.steps)) for _ in parameters]
        if state.moments:
            self._means = [_unpacked(each.mean, one) for each, one in zip(state.moments, parameters, strict=True)]
            self._squares = [_unpacked(each.square, one) for each, one in zip(state.moments, parameters, strict=True)]
        else:
            self._means, self._squares = [[torch.zeros_like(one) for one in parameters] for _ in range(2)]

    def state(self, policy: Policy, updates: int) -> State:
        """The policy with the state of Adam."""
        pairs = zip(self._means, self._squares, strict=True)
        moments = tuple(Moments(_packed(mean), _packed(square)) for mean, square in pairs)
        return State(policy, updates, int(self._steps[0]), moments)

    def forget_gradients(self) -> None:
        """Clear the gradients."""
        for parameter in self._parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Update the parameters."""
        adam(
            list(self._parameters),
            [one.grad for one in self._parameters if one.grad is not None],
            self._means,
            self._squares,
            max_exp_avg_sqs=[],
            state_steps=self._steps,
            foreach=False,
            lr=self._rate,
            beta1=BETAS[0],
            beta2=BETAS[1],
            eps=EPSILON,
            weight_decay=0.0,
            amsgrad=False,
            maximize=False,
        )


def _packed(tensor: torch.Tensor) -> bytes:
    return tensor.detach().numpy().astype("<f4").tobytes()


def _unpacked(packed: bytes, like: nn.Parameter) -> torch.Tensor:
    return torch.from_numpy(np.frombuffer(packed, dtype="<f4").reshape(tuple(like.shape)).copy())
