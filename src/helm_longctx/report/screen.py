"""An elided input as HELM's front end shows it: with links, and the evidence marked."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping

# The front end shows an input with this in it as HTML, any other as text.
_MAKES_HTML = '<br><img src="data:image;base64'
# An image of one pixel that cannot be seen.
_AS_HTML = f'{_MAKES_HTML},R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7" alt="" hidden>'
# What the front end has around a text.
_BOX = "bg-base-200 p-2 block overflow-auto w-full max-h-[36rem] mb-2 whitespace-pre-wrap localize-text-direction"
_EVIDENCE = re.compile(r"\[evidence, depth \d+%: [^\]]*\]")
_LEFT_OUT = re.compile(r"\[\.\.\. [\d,]+ characters left out, [^\]]*\.\.\.\]")


def safe_input(text: str) -> str:
    """A text that the front end shows as it stands. Else what is in a prompt could be HTML there, and run scripts."""
    return _boxed(html.escape(text, quote=False)) if _MAKES_HTML in text else text


def input_html(text: str, link: str, index: str) -> str:
    """An input for the front end.

    Args:
        text: elided.
        link: the address of the whole prompt.
        index: the address of the list of prompts.
    """
    body = _EVIDENCE.sub(r"<mark>\g<0></mark>", html.escape(text, quote=False))
    body = _LEFT_OUT.sub(lambda mark: _anchor(link, mark[0]), body)
    return f"<div>{_links(link, 'Whole prompt', index)}</div>{_boxed(body)}"


def conversation_html(messages: Iterable[Mapping[str, str]], link: str, index: str) -> str:
    """A long conversation for the front end, which shows messages as text alone, and so no link.

    Args:
        messages: elided.
        link: the address of the whole conversation.
        index: the address of the list of prompts.
    """
    parts = (f"<div>{html.escape(m['role'])}</div>{_boxed(html.escape(m['content'], quote=False))}" for m in messages)
    return f"<div>{_links(link, 'Whole conversation', index)}</div>{''.join(parts)}"


def _links(link: str, text: str, index: str) -> str:
    return f"{_anchor(link, text)} · {_anchor(index, 'all prompts of this run')}"


def _boxed(body: str) -> str:
    return f'<div class="{_BOX}">{body}</div>{_AS_HTML}'


def _anchor(link: str, text: str) -> str:
    return f'<a class="link link-primary" href="{html.escape(link)}" target="_blank">{text}</a>'
