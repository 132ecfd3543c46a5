"""The contract of a provider: its wire format, its batch format, and its row in the registry.

`WireFormat` says what to send for a request and what an answer means. `BatchFormat` says the same of batches.
`Provider` is a row of `registry.py`: where a provider is, which wire format it has, and what its batches cost. All of
them are pure. Nothing that reads an answer raises, whatever the server sent.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

import msgspec

from groundswell.program.request import Embedding, Fault, Reply, Request, Settlement, Standing
from groundswell.providers.batches import Batch, Page, RequestLookup
from groundswell.providers.faults import SHARED, FaultTable

_VERSIONED = re.compile(r"/v\d\w*(/openai)?$")


class Call(NamedTuple):
    """A POST request: the path below the provider's base URL, and the body."""

    path: str
    body: bytes


Options = Mapping[str, str | None]
NO_OPTIONS: Options = MappingProxyType({})


class Option(NamedTuple):
    """A setting of an account that only one wire format has. `off` in a file means None."""

    choices: tuple[str, ...]
    default: str | None


class WireFormat(ABC):
    """How a provider's API is spoken.

    name          what `dialect` in groundswell.toml calls it
    version       the version at the beginning of every path
    health_path   a GET of this path costs nothing and shows whether the server answers
    default_port  the port of a base URL that names none; without one, a base URL must be complete
    options       settings of an account that are passed to `encode`, by name
    faults        what the provider's errors mean, on top of what errors mean everywhere
    batch         the batch API of this format, if it has one
    """

    name: str
    version = "/v1"
    health_path = "/v1/models"
    default_port: int | None = None
    options: Mapping[str, Option] = MappingProxyType({})
    batch: BatchFormat | None = None

    def __init__(self, faults: FaultTable = SHARED) -> None:
        self.faults = faults

    @abstractmethod
    def headers(self, key: str | None) -> dict[str, str]:
        """The headers of every request."""

    @abstractmethod
    def encode(self, request: Request, model: str, options: Options = NO_OPTIONS) -> Call | Fault:
        """What to send for a request; a fault where the provider has no such thing.

        `model` is the provider's own name for the model, without `provider/` before it.
        """

    @abstractmethod
    def decode(
        self, request: Request, status: int, headers: Mapping[str, str], body: bytes, now: float
    ) -> Reply | Embedding | Fault:
        """What an answer means."""

    def rate_limits(self, headers: Mapping[str, str], now: float) -> tuple[Standing, ...]:
        """The rate limits that the headers of an answer report. Header names are lower case; `now` is Unix time."""
        return ()

    def url(self, base: str, path: str) -> str:
        """The URL of a path. A base URL may end in its version (`…/v1`); the version of the path is left out then."""
        base = base.rstrip("/")
        return base + (path.removeprefix(self.version) if _VERSIONED.search(base) else path)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class BatchFormat(ABC):
    """How a provider's batch API is spoken. `wire` is the format of the requests in a batch.

    name          the name of the transport, as the journal records it
    path          where batches are created, listed and, with an id, looked at
    max_requests  requests in one batch
    max_bytes     bytes in one batch
    queue_counts  what the limit of the provider's queue counts
    days_kept     days after which the provider deletes the results
    mixed         whether one batch may hold several models and endpoints
    tagged        whether a batch object carries our run and wave; otherwise only the ids in its results show that
    separator     what stands between two lines; `before` and `after` enclose all of them

    The lines are the body of the request that creates a batch, unless it is an `UploadedBatchFormat`.
    """

    name: str
    path: str
    max_requests: int
    max_bytes: int
    queue_counts: Literal["tokens", "requests"]
    days_kept: int
    mixed = False
    tagged = False
    separator = b"\n"
    before = after = b""

    @abstractmethod
    def encode(self, request: Request, model: str, options: Options = NO_OPTIONS) -> Call | Fault:
        """What a request is in a batch; a fault where it cannot be in one."""

    def weight(self, request: Request, size: int) -> int:
        """What a line of so many bytes counts as."""
        return size

    @abstractmethod
    def line(self, custom_id: str, call: Call) -> bytes:
        """One request of a batch."""

    @abstractmethod
    def list_path(self, after: str | None) -> str:
        """The path of a page of the list of batches, newest first."""

    def batch_path(self, batch: str) -> str:
        """The path of one batch."""
        return f"{self.path}/{batch}"

    def cancel_path(self, batch: str) -> str:
        """The path that cancels a batch."""
        return f"{self.path}/{batch}/cancel"

    @abstractmethod
    def read_batch(self, data: object) -> Batch | None:
        """A batch object; None where it is none."""

    @abstractmethod
    def read_page(self, data: object) -> Page | None:
        """A page of the list of batches; None where it is none."""

    @abstractmethod
    def read_line(self, line: bytes, asked: RequestLookup, endpoint: str, now: float) -> tuple[str, Settlement] | None:
        """The custom id and the settlement of one result; None where the line cannot be read."""


class UploadedBatchFormat(BatchFormat):
    """A batch API that takes the lines as a file, which is uploaded to `upload_path` first."""

    upload_path: str

    @abstractmethod
    def form(self, boundary: str, name: str) -> tuple[bytes, bytes]:
        """What stands before and after the lines in the form that uploads them."""

    @abstractmethod
    def read_upload(self, data: object) -> str | None:
        """The id of an uploaded file."""

    @abstractmethod
    def create(self, file: str, endpoint: str, run: str, wave: int, requests: int) -> bytes:
        """The body that creates a batch from an uploaded file."""


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the registry.

    base_urls     requests go to the first; the others are the provider's own, too
    key_env       the variables that may hold the key; the first one that is set wins
    base_url_env  the variable that may hold another address
    hosted        whether somebody else runs it. A server of one's own needs no key, and costs nothing
    hint          where to get a key, or how to start the server
    price_list    what the package genai-prices calls the provider, if not by its name
    batch_price   the price of its batch API as a share of the live price; None if it has no batch API
    batch         whether Groundswell uses that batch API unless the account says otherwise: `wire.batch` must speak it
    batch_cache   whether cached tokens are cheaper in batches where the price list names no batch price for them
    """

    name: str
    wire: WireFormat
    base_urls: tuple[str, ...]
    key_env: tuple[str, ...] = ()
    base_url_env: str | None = None
    hosted: bool = True
    hint: str
    price_list: str | None = None
    batch_price: float | None = None
    batch: bool = False
    batch_cache: bool = True

    @property
    def dialect(self) -> str:
        """The name of its wire format."""
        return self.wire.name
