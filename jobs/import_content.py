"""What went into a span and what came out of it, taken for question, answer, citations and chunks.

For tools whose spans have one input and one output of any shape. Knows no tool.
"""

from __future__ import annotations

from typing import Any

from claimscore.jobs.import_citations import citations_of
from claimscore.jobs.import_documents import fill_documents, handed_of
from claimscore.jobs.import_spans import Kind, Options, Span
from claimscore.jobs.import_texts import answer_of, question_of


def fill_content(span: Span, given: Any, output: Any, options: Options, *, called: str) -> None:
    """Fill a span from its input and output.

    Args:
        span: its kind is known.
        given: what went in, unpacked; None: nothing.
        output: what came out, unpacked; None: nothing.
        options: which keys are the question's and the answer's.
        called: the tool's word for the output, for the reason why it has no answer.
    """
    asked, answered = question_of(given, options.question_keys), answer_of(output, options.answer_keys)
    span.question, span.answer, span.n_dropped = asked.text, answered.text, answered.n_dropped
    if answered.text is None and output is not None:
        span.answer_problem = "no_known_key", f"{called} has {', '.join(answered.keys) or 'no text'}"
    if span.kind == Kind.LLM:
        span.citations = citations_of(output, answered.text)
        span.handed, span.joined = handed_of(given, options)
    fill_documents(span, output, options)
