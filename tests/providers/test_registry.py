"""Every row of the registry and every wire format keeps the contract. A new provider is found here by itself."""

from __future__ import annotations

import re

import msgspec
import pytest

from groundswell.program.request import Chat, Embed, Fault, FaultKind, Reply, user
from groundswell.providers.accounts.account import Account
from groundswell.providers.accounts.addresses import endpoint, same_place
from groundswell.providers.accounts.settings import SETTINGS, dialect
from groundswell.providers.provider import BatchFormat, Call, Provider, UploadedBatchFormat, WireFormat
from groundswell.providers.registry import BATCH_FORMATS, IN_PROCESS, PROVIDERS, WIRE_FORMATS, wire_format

CHAT = Chat("the-model", (user("Name a colour."),), max_tokens=9)
EMBED = Embed("the-model", ("one", "two"))
KEY = "sk-of-a-test-and-of-no-worth"
BATCHES = {name: wire.batch for name, wire in WIRE_FORMATS.items() if wire.batch is not None}

each_provider = pytest.mark.parametrize("provider", PROVIDERS.values(), ids=PROVIDERS)
each_wire = pytest.mark.parametrize("wire", WIRE_FORMATS.values(), ids=WIRE_FORMATS)
each_batch = pytest.mark.parametrize("batch", BATCHES.values(), ids=BATCHES)


@each_provider
def test_a_row_has_all_that_an_account_needs(provider: Provider) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9]*", provider.name)
    assert provider.name not in IN_PROCESS
    assert [endpoint(url) for url in provider.base_urls] == list(provider.base_urls)
    assert all(re.fullmatch(r"[A-Z][A-Z0-9_]*", name) for name in provider.key_env)
    assert provider.key_env or not provider.hosted
    assert provider.hint
    account = Account(name="box", provider=provider.name, dialect=provider.dialect, endpoints=provider.base_urls)
    assert account.wire is provider.wire


@each_provider
def test_batches_are_used_only_where_there_are_some_and_their_price_is_known(provider: Provider) -> None:
    assert not provider.batch or (provider.wire.batch is not None and provider.batch_price is not None)
    assert provider.batch_price is None or 0 < provider.batch_price <= 1
    account = Account(name="box", provider=provider.name, dialect=provider.dialect, endpoints=provider.base_urls)
    assert account.batch_format is (provider.wire.batch if provider.batch else None)
    refused = msgspec.structs.replace(account, batch=False)
    assert refused.batch_format is None


@each_provider
def test_one_rule_says_where_the_version_stands(provider: Provider) -> None:
    base = provider.base_urls[0]
    path = f"{provider.wire.version}/things"
    url = provider.wire.url(base, path)
    assert url == provider.wire.url(f"{base}/", path)
    assert len(re.findall(r"/v\d", url)) == (1 if provider.wire.version else len(re.findall(r"/v\d", base)))
    assert same_place(base, base, provider.wire)


@each_wire
def test_a_wire_format_is_a_setting(wire: WireFormat) -> None:
    assert dialect(wire.name) == wire.name
    assert wire_format(wire.name) is wire
    assert wire_format(wire.name, "no such provider") is wire
    for name, option in wire.options.items():
        assert [SETTINGS[name].read(choice) for choice in option.choices] == list(option.choices)
        assert option.default is None or option.default in (option.choices or [SETTINGS[name].read(option.default)])


@each_wire
def test_a_chat_is_sent_as_json_and_the_key_in_a_header_alone(wire: WireFormat) -> None:
    call = wire.encode(CHAT, "its-own-name", {"body": '{"model":"{model}","text":"{query}"}'})
    assert isinstance(call, Call)
    assert call.path.startswith("/") or wire.name == "application"
    assert b"Name a colour." in call.body
    assert b"the-model" not in call.body
    assert "its-own-name" in call.path + call.body.decode()
    headers = wire.headers(KEY)
    assert KEY in "".join(headers.values())
    assert KEY not in "".join(wire.headers(None).values())
    assert all(name == name.lower() for name in headers)
    assert KEY not in call.path + call.body.decode()


@each_wire
def test_embeddings_are_sent_or_refused(wire: WireFormat) -> None:
    call = wire.encode(EMBED, "its-own-name")
    assert isinstance(call, Call) or call.kind is FaultKind.BAD_REQUEST


@each_wire
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, FaultKind.AUTH),
        (404, FaultKind.NOT_FOUND),
        (429, FaultKind.RATE_LIMITED),
        (500, FaultKind.SERVER),
        (503, FaultKind.OVERLOADED),
    ],
)
def test_what_a_status_means_is_the_same_everywhere(wire: WireFormat, status: int, kind: FaultKind) -> None:
    fault = wire.decode(CHAT, status, {"retry-after": "7"}, b"{}", 0.0)
    assert isinstance(fault, Fault)
    assert (fault.kind, fault.retry_after) == (kind, 7.0)


@each_wire
def test_an_answer_of_nothing_is_garbled(wire: WireFormat) -> None:
    fault = wire.decode(CHAT, 200, {"content-type": "application/json"}, b"{}", 0.0)
    assert isinstance(fault, Fault)
    assert fault.kind is FaultKind.GARBLED
    assert not isinstance(fault, Reply)


@each_batch
def test_a_batch_format_has_all_that_the_transport_needs(batch: BatchFormat) -> None:
    assert re.fullmatch(r"[a-z]+_batch", batch.name)
    assert batch.max_requests > 0
    assert batch.max_bytes > 0
    assert batch.days_kept > 1, "a batch may take a day"
    assert BATCH_FORMATS[batch.name] is batch
    call = batch.encode(CHAT, "its-own-name")
    assert isinstance(call, Call)
    line = batch.line("id-1", call)
    assert msgspec.json.decode(line)["custom_id"] == "id-1"
    assert b"\n" not in line
    enclosed = batch.before + batch.separator.join([line, line]) + batch.after
    if not isinstance(batch, UploadedBatchFormat):
        assert msgspec.json.decode(enclosed)
    else:
        assert batch.upload_path.startswith("/")
        before, after = batch.form("boundary", "name.jsonl")
        assert before.startswith(b"--boundary")
        assert after.rstrip().endswith(b"--boundary--")
        assert msgspec.json.decode(batch.create("file-1", call.path, "a-run", 7, 2))
        assert batch.read_upload({}) is None


@each_batch
def test_batches_are_below_one_path(batch: BatchFormat) -> None:
    assert batch.list_path(None).startswith(batch.path)
    assert "id-1" in batch.list_path("id-1")
    assert batch.batch_path("id-1") == f"{batch.path}/id-1"
    assert "id-1" in batch.cancel_path("id-1")
    assert (batch.read_batch({}), batch.read_page({})) == (None, None)
    assert batch.read_line(b"{}", lambda _: None, "", 0.0) is None
