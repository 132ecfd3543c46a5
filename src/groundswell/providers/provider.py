"""The contract of a provider: its wire format, its batch format, and its row in the registry.

`WireFormat` encodes requests and decodes answers. `BatchFormat` does the same for batches. `Provider` is a row of
`registry.py`: the addresses of a provider, its wire format, and the price of its batches. All of them are pure.
No function that reads an answer raises, whatever the server sent.
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
    """A setting of an account that only one wire format has. `off` in a file means None.

    Without `choices`, any text fits.
    """

    choices: tuple[str, ...]
    default: str | None
    description: str


class WireFormat(ABC):
    """The wire format of a provider's API.

    name          the value of `dialect` in groundswell.toml that selects it
    version       the version at the beginning of every path
    health_path   a GET of this path is free and shows whether the server answers
    default_port  the port of a base URL that has none; without a default port, a base URL must be complete
    options       account settings that are passed to `encode`, by name
    faults        the provider's own error codes and phrases, read before the shared ones
    batch         the batch API of this format, if it has one
    cached        whether equal requests may share a reply
    may_echo      whether a reply may repeat the headers of the request; keys are then removed from it
    """

    name: str
    cached = True
    may_echo = False
    version = "/v1"
    health_path = "/v1/models"
    default_port: int | None = None
    options: Mapping[str, Option] = MappingProxyType({})
    batch: BatchFormat | None = None

    def __init__(self, faults: FaultTable = SHARED) -> None:
        self.faults = faults

    def configured(self, options: Options) -> WireFormat:
        """The format for an account with these settings."""
        return self

    @abstractmethod
    def headers(self, key: str | None) -> dict[str, str]:
        """The headers of every request."""

    @abstractmethod
    def encode(self, request: Request, model: str, options: Options = NO_OPTIONS) -> Call | Fault:
        """Encode a request. Return a fault if the provider does not support it.

        `model` is the provider's own name for the model, without the `provider/` prefix.
        """

    @abstractmethod
    def decode(
        self, request: Request, status: int, headers: Mapping[str, str], body: bytes, now: float
    ) -> Reply | Embedding | Fault:
        """Decode an answer into a reply, an embedding or a fault."""

    def rate_limits(self, headers: Mapping[str, str], now: float) -> tuple[Standing, ...]:
        """Read the rate limits from the headers of an answer. Header names are lower case; `now` is Unix time."""
        return ()

    def url(self, base: str, path: str) -> str:
        """The URL of a path. If the base URL already ends in a version (`…/v1`), the version of the path is dropped."""
        base = base.rstrip("/")
        return base + (path.removeprefix(self.version) if _VERSIONED.search(base) else path)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class BatchFormat(ABC):
    """The format of a provider's batch API. `wire` is the format of the requests in a batch.

    name          the name of the transport in the journal
    path          the path for creating and listing batches; with an id appended, the path of one batch
    max_requests  the most requests in one batch
    max_bytes     the most bytes in one batch
    queue_counts  the unit of the provider's queue limit
    days_kept     days after which the provider deletes the results
    mixed         whether one batch may hold several models and endpoints
    tagged        whether a batch object carries the run and wave; otherwise only the ids in its results identify it
    separator     the bytes between two lines; `before` and `after` enclose all lines

    The lines are the body of the request that creates the batch, except in an `UploadedBatchFormat`.
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
        """Encode a request for a batch. Return a fault if batches do not support it."""

    def weight(self, request: Request, size: int) -> int:
        """The number of bytes that a line counts for against `max_bytes`."""
        return size

    @abstractmethod
    def line(self, custom_id: str, call: Call) -> bytes:
        """One line of a batch."""

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
        """Read a batch object. Return None if the data is not one."""

    @abstractmethod
    def read_page(self, data: object) -> Page | None:
        """Read a page of the list of batches. Return None if the data is not one."""

    @abstractmethod
    def read_line(self, line: bytes, asked: RequestLookup, endpoint: str, now: float) -> tuple[str, Settlement] | None:
        """Read the custom id and the settlement from one line of results. Return None if the line is unreadable."""


class UploadedBatchFormat(BatchFormat):
    """A batch API that takes the lines as a file, uploaded to `upload_path` first."""

    upload_path: str

    @abstractmethod
    def form(self, boundary: str, name: str) -> tuple[bytes, bytes]:
        """The parts of the upload form before and after the lines."""

    @abstractmethod
    def read_upload(self, data: object) -> str | None:
        """Read the id of an uploaded file."""

    @abstractmethod
    def create(self, file: str, endpoint: str, run: str, wave: int, requests: int) -> bytes:
        """The body that creates a batch from an uploaded file."""


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the registry.

    base_urls     requests go to the first; the others also belong to the provider
    key_env       variables that may hold the key; the first one that is set is used
    base_url_env  the variable that may hold another base URL
    hosted        whether the provider is a hosted service. A server of your own needs no key and costs nothing
    hint          where to get a key, or how to start the server
    price_list    the provider's name in the package genai-prices, if it differs
    batch_price   the price of batch requests as a fraction of the live price; None without a batch API
    batch         whether batches are on by default; `wire.batch` must then implement the batch API
    batch_cache   whether cached tokens are cheaper in batches if the price list has no batch price for them
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
