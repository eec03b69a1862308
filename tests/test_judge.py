"""The judge: classes by name, a self-test before any pair, ids joined, NaN never a label."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import tiny_deberta as tiny
import torch
from safetensors.torch import load_file, save_file

from claimscore.jobs import judge as judge_module
from claimscore.jobs.config_file import load_card
from claimscore.jobs.judge import Judge, load_tokenizer

ROOT = Path(__file__).parents[1]


make = tiny.make_judge


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    """Products this small take longer to share out than to compute."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)


def ids(rows):
    return pa.array(rows, pa.list_(pa.int32()))


def random_pairs(lengths, seed=0):
    """Ids of (premise, claim) rows with the given (premise, claim) lengths."""
    rng = np.random.default_rng(seed)
    premises = [rng.integers(4, 60, n).tolist() for n, _ in lengths]
    return ids(premises), ids([rng.integers(4, 60, n).tolist() for _, n in lengths])


@pytest.mark.parametrize(
    "order", [("contradiction", "entailment", "neutral"), ("ENTAILMENT", "NEUTRAL", "CONTRADICTION")]
)
def test_columns_follow_id2label(tmp_path, order):
    """Reordering the names of a checkpoint reorders nothing but the meaning of its logits."""
    folder = tiny.write_tiny(tmp_path, id2label={str(i): name for i, name in enumerate(order)})
    premises, claims = random_pairs([(9, 4), (2, 7)])
    judge = make(folder)
    premise, claim = premises.to_pylist()[0], claims.to_pylist()[0]
    packed = torch.tensor([1, *premise, 2, *claim, 2])
    logits = judge._encoder.logits(packed, torch.tensor([0, len(packed)]), max_len=len(packed))
    expected = torch.softmax(logits, -1)[0]

    probs = judge.probabilities(premises, claims)

    names = [name.lower() for name in order]
    for column, label in enumerate(("entailment", "neutral", "contradiction")):
        assert float(expected[names.index(label)]) == pytest.approx(probs[0, column], abs=1e-6)


def test_two_classes_give_supported_and_its_rest(tmp_path):
    """A two-class head has no contradiction: (p, 1 - p, 0), by the names on the card."""
    folder = tiny.write_tiny(tmp_path, id2label={"0": "LABEL_0", "1": "LABEL_1"})
    premises, claims = random_pairs([(9, 4), (2, 7)])
    upright = make(folder, labels=("not_supported", "supported")).probabilities(premises, claims)
    inverted = make(folder, labels=("supported", "not_supported")).probabilities(premises, claims)

    np.testing.assert_allclose(upright[:, 0], inverted[:, 1], atol=1e-6)
    np.testing.assert_allclose(1, upright[:, :2].sum(1), atol=1e-6)
    assert not upright[:, 2].any()


def test_nan_logits_are_a_nan_row_and_no_label(tmp_path):
    """One pair with logits that are not finite becomes NaN throughout; its neighbours keep their scores."""
    folder = tiny.write_tiny(tmp_path)
    clean = make(folder).probabilities(ids([[5, 6], [7], [8]]), ids([[9], [10], [11]]))
    weights = load_file(folder / "model.safetensors")
    weights["deberta.embeddings.word_embeddings.weight"][7] = torch.nan
    save_file(weights, folder / "model.safetensors")

    probs = make(folder).probabilities(ids([[5, 6], [7], [8]]), ids([[9], [10], [11]]))

    assert np.isnan(probs[1]).all()
    np.testing.assert_allclose(probs[[0, 2]], clean[[0, 2]], atol=1e-6)


def test_the_pairs_of_each_micro_batch_are_told(tmp_path):
    """How far a call is shows before it ends: every pair once, and not all of them at the end."""
    told = []
    make(tiny.write_tiny(tmp_path), budget_tokens=24).probabilities(
        ids([[5] * 9, [6] * 9, [7] * 9]), ids([[9], [10], [11]]), told.append
    )

    assert (sum(told), len(told) > 1) == (3, True)


@pytest.mark.parametrize("bad", [torch.inf, -torch.inf, torch.nan])
def test_any_logit_that_is_not_finite_spoils_its_row(tmp_path, bad):
    """An infinite logit is no certainty."""
    probs = make(tiny.write_tiny(tmp_path))._to_labels(torch.tensor([[0.0, bad, 1.0], [0.0, 1.0, 2.0]]))

    assert np.isnan(probs).all(1).tolist() == [True, False]


def test_a_score_does_not_depend_on_its_neighbours(tmp_path):
    """The same 50 pairs alone, in one batch, in small batches and beside a 500-token pair: equal to 1e-5."""
    judge = make(tiny.write_tiny(tmp_path))
    lengths = [(3 + 7 * i % 90, 2 + i % 11) for i in range(50)]
    premises, claims = random_pairs(lengths)
    together = judge.probabilities(premises, claims)
    alone = np.concatenate([judge.probabilities(premises.slice(i, 1), claims.slice(i, 1)) for i in range(50)])
    long_premises, long_claims = random_pairs([(480, 17)], seed=1)
    beside = judge.probabilities(
        pa.concat_arrays([long_premises, premises]), pa.concat_arrays([long_claims, claims])
    )
    small = make(judge.card.model, budget_tokens=64).probabilities(premises, claims)

    for other in (alone, beside[1:], small):
        np.testing.assert_allclose(other, together, atol=1e-5, rtol=0)
        assert (other.argmax(1) == together.argmax(1)).all()


def test_lanes_change_no_score_and_tell_every_pair(tmp_path):
    """Three forward passes at once: each pair has its own row, in input order, and `tick` hears of all of them."""
    alone = make(tiny.write_tiny(tmp_path))
    torch.set_num_threads(3)
    try:
        beside = make(alone.card.model)
    finally:
        torch.set_num_threads(1)
    premises, claims = random_pairs([(3 + 7 * i % 90, 2 + i % 11) for i in range(50)])
    told = []

    found = beside.probabilities(premises, claims, told.append)

    np.testing.assert_allclose(found, alone.probabilities(premises, claims), atol=1e-5, rtol=0)
    assert (sum(told), len(told) >= 3) == (50, True)


def test_rows_come_back_in_input_order(tmp_path):
    """Reversing the pairs reverses the scores."""
    judge = make(tiny.write_tiny(tmp_path), budget_tokens=64)
    premises, claims = random_pairs([(1 + i, 3) for i in range(20)])
    order = pa.array(range(19, -1, -1))

    reversed_probs = judge.probabilities(premises.take(order), claims.take(order))

    np.testing.assert_allclose(reversed_probs[::-1], judge.probabilities(premises, claims), atol=1e-5)


def test_segments_mark_the_claim(tmp_path):
    """A checkpoint with segments sees the claim and its [SEP] as the second one, as transformers' pairs do."""
    judge = make(tiny.write_tiny(tmp_path, type_vocab_size=2))
    packed = torch.tensor([1, 5, 6, 2, 7, 2])
    logits = judge._encoder.logits(
        packed, torch.tensor([0, 6]), max_len=6, type_ids_T=torch.tensor([0, 0, 0, 0, 1, 1])
    )

    np.testing.assert_allclose(
        judge.probabilities(ids([[5, 6]]), ids([[7]])), judge._to_labels(logits), atol=1e-6
    )


def test_slices_and_chunks_are_read_where_they_lie(tmp_path):
    """A sliced or chunked column gives the scores of its own rows."""
    judge = make(tiny.write_tiny(tmp_path))
    premises, claims = random_pairs([(4, 2), (5, 3), (6, 4)])
    expected = judge.probabilities(premises, claims)

    sliced = judge.probabilities(premises.slice(1), claims.slice(1))
    chunked = judge.probabilities(
        pa.chunked_array([premises.slice(0, 1), premises.slice(1)]), pa.chunked_array([claims])
    )

    np.testing.assert_allclose(sliced, expected[1:], atol=1e-6)
    np.testing.assert_allclose(chunked, expected, atol=1e-6)


def test_no_pairs_give_no_rows(tmp_path):
    """Nothing in, (0, 3) out."""
    assert make(tiny.write_tiny(tmp_path)).probabilities(ids([]), ids([])).shape == (0, 3)


def test_a_blank_pair_is_scored(tmp_path):
    """Two empty texts are still [CLS] [SEP] [SEP]."""
    assert np.isfinite(make(tiny.write_tiny(tmp_path)).probabilities(ids([[]]), ids([[]]))).all()


@pytest.mark.parametrize(
    ("premises", "claims", "message"),
    [
        ([[5] * 30], [[6] * 8], "pair 0 has 41 tokens, expected at most 40"),
        ([[5]], [], "1 premises and 0 claims"),
        ([None], [[6]], "1 lists and 0 ids are null"),
        ([[200]], [[6]], "token ids span 200 to 200, expected 0 to 199"),
        ([[-1]], [[6]], "token ids span -1 to -1"),
    ],
)
def test_pairs_that_cannot_be_scored_are_the_callers_mistake(tmp_path, premises, claims, message):
    """Nothing is cut, dropped or clamped to fit."""
    judge = make(tiny.write_tiny(tmp_path), max_pair_tokens=40)

    with pytest.raises(ValueError, match=message):
        judge.probabilities(ids(premises), ids(claims))


@pytest.mark.demo
def test_the_demo_judge_agrees_with_transformers():
    """On real weights: the self-test passes, and probabilities are transformers' own to 1e-4."""
    folder = ROOT / "demo-models" / "demo-judge"
    if not folder.is_dir():
        pytest.skip("demo-models is not built (scripts/build_demo_models.py)")
    from transformers import AutoTokenizer, DebertaV2ForSequenceClassification

    demo = load_card(ROOT / "configs" / "judges" / "demo.toml")
    premise = "The refund window is 60 days from delivery. " * 12
    pairs = [(premise, "Refunds are possible for 30 days."), ("Paris is in France.", "France holds Paris.")]
    model = DebertaV2ForSequenceClassification.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        rows = [model(**tokenizer(*pair, return_tensors="pt")).logits[0].softmax(-1) for pair in pairs]
    order = [
        json.loads((folder / "config.json").read_text())["label2id"][name] for name in judge_module.THREE
    ]
    ours_tokenizer = load_tokenizer(str(folder))

    ours = Judge(demo, budget_tokens=4096, device="cpu").probabilities(
        *(
            ours_tokenizer.encode(pa.array(texts))["ids"].combine_chunks()
            for texts in zip(*pairs, strict=True)
        )
    )

    np.testing.assert_allclose(ours, torch.stack(rows)[:, order].numpy(), atol=1e-4)
