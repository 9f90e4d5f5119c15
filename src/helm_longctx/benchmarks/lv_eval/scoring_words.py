"""Words that LV-Eval's metrics do not count.

Source: infinigence/LVEval at 63e7ae9, metrics.py. They are part of the metrics' definition.
"""

_ENGLISH = """
    and to of in her was with for it from is that his he by she they or at because be on are their what as had were
    about being this who but have has when which does
"""
ENGLISH = frozenset(_ENGLISH.split())
"""No keyword hit counts that is one of these (the gate of the English sets)."""

_CHINESE = """
    的 和 是 等 在 年 可以 为 与 ‰ 了 或 一种 月 c 至 日 有 进行 于 不 中 × 根据 小
    由 亩 也 要 指 法 会 元 主要 以及 通过 首先 对 然后 号 以 所 后 丁 包括 无 将 用 能
    形 方面 因素 位于 而 从 到 一定 用于 但 使用 让 具有 并 亿元 万元 上 类 基于 才 来 地
    片 其他 个 或者 变得 时 给 你 使 条 受 已经 带 度
"""
CHINESE = frozenset(_CHINESE.split())
"""The same for the Chinese sets; dureader's ROUGE drops them from both texts."""
