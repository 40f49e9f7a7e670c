"""Draws scenes of media_data.py with torch, many at once, with smooth edges."""
import math

import torch

import media_data as m


def _inside(kind, u, v):
    """below 0 inside; about the distance to the edge in parts of the size"""
    if kind == "circle":
        return torch.sqrt(u * u + v * v) - 0.95
    if kind == "square":
        return torch.maximum(u.abs(), v.abs()) - 0.82
    if kind == "diamond":
        return (u.abs() / 0.68 + v.abs() - 1.0) * 0.56
    if kind == "triangle":
        return torch.maximum(v - 0.55, 0.866 * u.abs() - 0.5 * v - 0.5)
    if kind == "star":
        step = 2 * math.pi / 5
        a = torch.atan2(u, -v)
        k = (a - torch.round(a / step) * step).abs()
        rad = torch.sqrt(u * u + v * v)
        x, y = rad * torch.cos(k), rad * torch.sin(k)
        ix, iy = 0.45 * math.cos(step / 2), 0.45 * math.sin(step / 2)
        length = math.hypot(ix - 1, iy)
        return (y * (1 - ix) + (x - 1) * iy) / length
    d, v0 = 0.78, 0.15                                 # heart: a rotated square and two circles
    square = (u.abs() + (v - v0).abs() - d) * 0.7071
    circles = torch.sqrt((u.abs() - d / 2) ** 2 + (v - v0 + d / 2) ** 2) - d * 0.7071
    return torch.minimum(square, circles)


def pack(scenes):
    """scenes -> tensors (n, 5 objects): shape, color (-1: none), x, y, size, turn; background (n)"""
    n, k = len(scenes), 5
    shape = torch.full((n, k), -1, dtype=torch.long)
    color = torch.full((n, k), -1, dtype=torch.long)
    geo = torch.zeros(n, k, 4)
    back = torch.zeros(n, dtype=torch.long)
    names, backs = list(m.COLORS), list(m.BACKGROUNDS)
    for i, s in enumerate(scenes):
        back[i] = backs.index(s["background"])
        for j, o in enumerate(s["objects"]):
            shape[i, j] = m.SHAPES.index(o["shape"])
            color[i, j] = names.index(o["color"])
            geo[i, j] = torch.tensor([o["x"], o["y"], o["size"], o["turn"]])
    return shape, color, geo, back


def draw(packed, height, width, generator=None, jitter=True, kinds=None):
    """-> (n, 3, height, width) in 0..1, on the device of packed; kinds: the shapes in CPU memory, so that nothing waits"""
    shape, color, geo, back = packed
    dev, n = geo.device, shape.shape[0]
    kinds = shape.cpu() if kinds is None else kinds
    rand = lambda *s: torch.rand(*s, device=dev, generator=generator)
    palette = torch.tensor(list(m.COLORS.values()), device=dev).float() / 255
    backs = torch.tensor(list(m.BACKGROUNDS.values()), device=dev).float() / 255
    img = backs[back]
    if jitter:
        img = (img + (rand(n, 3) - 0.5) * 0.03).clamp(0, 1)
    img = img[:, :, None, None].expand(n, 3, height, width).contiguous()
    ys = (torch.arange(height, device=dev) + 0.5)[None, :, None]
    xs = (torch.arange(width, device=dev) + 0.5)[None, None, :]
    side = min(height, width)
    for j in range(shape.shape[1]):
        for kind in range(len(m.SHAPES)):
            rows = (kinds[:, j] == kind).nonzero()[:, 0]
            if rows.numel() == 0:
                continue
            rows = rows.to(dev, non_blocking=True)
            g = geo[rows, j]
            size = (g[:, 2] * side)[:, None, None]
            dx, dy = xs - (g[:, 0] * width)[:, None, None], ys - (g[:, 1] * height)[:, None, None]
            c, s = torch.cos(g[:, 3])[:, None, None] / size, torch.sin(g[:, 3])[:, None, None] / size
            f = _inside(m.SHAPES[kind], dx * c + dy * s, dy * c - dx * s)
            cover = (0.5 - f * size).clamp(0, 1)[:, None]
            paint = palette[color[rows, j]]
            if jitter:
                paint = (paint + (rand(rows.numel(), 3) - 0.5) * 0.1).clamp(0, 1)
            img[rows] = torch.lerp(img[rows], paint[:, :, None, None].expand(-1, -1, height, width), cover)
    return img


def patches(img, patch=16):
    """(n, 3, h, w) -> the official processor's pixel_values (n, patches, 768) and positions (n, patches, 2)"""
    n, _, h, w = img.shape
    x = img.reshape(n, 3, h // patch, patch, w // patch, patch).permute(0, 2, 4, 3, 5, 1).reshape(n, -1, patch * patch * 3)
    gy, gx = torch.meshgrid(torch.arange(h // patch, device=img.device), torch.arange(w // patch, device=img.device), indexing="ij")
    return x, torch.stack([gx, gy], -1).reshape(1, -1, 2).expand(n, -1, -1)


def cell_labels(packed, rows, cols, kinds=None):
    """which soft token holds an object's middle: (n, rows*cols) of shape*colors + color, or the number of all pairs"""
    shape, color, geo, _ = packed
    none = len(m.SHAPES) * len(m.COLORS)
    out = torch.full((shape.shape[0], rows * cols), none, dtype=torch.long, device=geo.device)
    cell = (geo[..., 1] * rows).long().clamp(0, rows - 1) * cols + (geo[..., 0] * cols).long().clamp(0, cols - 1)
    i, j = (shape.cpu() >= 0).nonzero(as_tuple=True) if kinds is None else (kinds >= 0).nonzero(as_tuple=True)
    i, j = i.to(geo.device), j.to(geo.device)
    out[i, cell[i, j]] = shape[i, j] * len(m.COLORS) + color[i, j]
    return out
