"""The whole job with its log and its tables on an object store (moto's server on loopback)."""

from __future__ import annotations

from pathlib import Path

import jobs_fixture
import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest
import stub_models
from moto.server import ThreadedMotoServer

from claimscore.jobs.nightly import execute_here, plan_day, run_day
from claimscore.jobs.pipeline import Models
from claimscore.jobs.plan import Weights
from claimscore.jobs.store import Store

KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_EC2_METADATA_DISABLED": "true"}


@pytest.fixture
def bucket():
    """A file system and the query that reaches its bucket `data`."""
    with pytest.MonkeyPatch.context() as env:
        for name, value in KEYS.items():
            env.setenv(name, value)
        server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
        host, port = server.get_host_and_port()
        fs = pyarrow.fs.S3FileSystem(
            endpoint_override=f"{host}:{port}", scheme="http", region="us-east-1", allow_bucket_creation=True
        )
        fs.create_dir("data")
        yield fs, f"?endpoint_override={host}:{port}&scheme=http&region=us-east-1"
        server.stop()


def test_a_day_on_an_object_store_is_made_once(bucket, tmp_path: Path):
    """Log and tables on s3://: every row comes out, a second run touches no model, and the tables read back."""
    fs, query = bucket
    with fs.open_output_stream(f"data/logs/{jobs_fixture.DATE}/part-0.parquet") as sink:
        pq.write_table(pa.Table.from_pylist(jobs_fixture.log_rows()), sink, row_group_size=3)
    jobs_fixture.write_config(tmp_path)
    config = jobs_fixture.make_config(
        tmp_path,
        f'read.logs="s3://data/logs/{{date}}/part-0.parquet{query}"',
        f'store.out="s3://data/out{query}"',
    )
    store = Store(config.store.out, config.store)
    judge = stub_models.StubJudge()
    untouchable = stub_models.UntouchableModel()

    reports = []
    for models in (
        Models(stub_models.StubLlm(), judge, judge),
        Models(untouchable, untouchable, untouchable),
    ):
        plan = plan_day(config, store, Weights.of(config), jobs_fixture.DATE)
        reports.append(run_day(config, store, plan, execute_here(config, store, models)))

    first, second = reports
    files = store.files("answers", date=jobs_fixture.DATE, series=first.series)
    assert pa.concat_tables([store.read(file) for file in files]).num_rows == 6
    assert (first.n_made, second.n_made, second.made) == (2, 0, {})
