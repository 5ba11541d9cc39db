"""Muon: momentum whose update of a matrix is replaced by the nearest orthogonal one.

Five matrix products on the small side of each matrix, for all matrices of one shape together. The
step is scaled so that its root mean square is that of AdamW at the same learning rate.
"""

import torch

# coefficients of the quintic Newton-Schulz iteration, published with the method
QUINTIC = (3.4445, -4.7750, 2.0315)


def orthogonal(g, rounds=5):
    """g [n, rows, cols] -> matrices with the same singular vectors and singular values near 1."""
    a, b, c = QUINTIC
    wide = g.shape[1] > g.shape[2]
    x = g.transpose(1, 2) if wide else g
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(rounds):
        s = x @ x.transpose(1, 2)
        x = torch.baddbmm(x, torch.baddbmm(s, s, s, beta=b, alpha=c), x, beta=a)
    return x.transpose(1, 2) if wide else x


class Muon(torch.optim.Optimizer):
    def __init__(self, params, lr, momentum=0.95, weight_decay=0.05):
        super().__init__(params, dict(lr=lr, momentum=momentum, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            by_shape = {}
            for p in group["params"]:
                by_shape.setdefault(p.shape, []).append(p)
            for shape, params in by_shape.items():
                look_ahead = [self.momentum(p, group["momentum"]) for p in params]
                update = orthogonal(torch.stack(look_ahead))
                scale = group["lr"] * 0.2 * max(shape) ** 0.5
                for p, u in zip(params, update):
                    p.mul_(1 - group["lr"] * group["weight_decay"]).sub_(u, alpha=scale)

    def momentum(self, p, beta):
        """Add the gradient of p to its momentum and return the Nesterov look-ahead."""
        state = self.state[p]
        if "m" not in state:
            state["m"] = torch.zeros_like(p)
        state["m"].lerp_(p.grad, 1 - beta)
        return p.grad.lerp(state["m"], beta)
