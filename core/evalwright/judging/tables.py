"""From the judges that a suite names to judges that can be asked."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalwright.canonical import is_array, is_object
from evalwright.model import PluginTable
from evalwright.prices import PriceTable
from evalwright.redaction import Redactor, credential_values
from evalwright.suite.judges import split_table

if TYPE_CHECKING:
    from evalwright.interfaces import Judge
    from evalwright.judging.limits import Limits
    from evalwright.judging.patient import PatientJudge

__all__ = ["Judging", "judge_secrets", "judge_variables"]

SECRET_SUFFIX = "_env"
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
PROXIES = ("all_proxy", "http_proxy", "https_proxy", "no_proxy")
NETWORK_VARIABLES = (*PROXIES, *(name.upper() for name in PROXIES), "SSL_CERT_DIR", "SSL_CERT_FILE")


def judge_secrets(tables: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the names of the environment variables that hold judges' keys.

    Those are what every ``..._env`` of a table names, and every ``${NAME}`` in the values of ``headers``.
    """
    names: list[str] = []
    for table in tables:
        names += [value for key, value in table.items() if key.endswith(SECRET_SUFFIX) and isinstance(value, str)]
        headers = table.get("headers")
        if is_object(headers):
            names += [name for value in headers.values() for name in VARIABLE.findall(str(value))]
    return names


def judge_variables(tables: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the names of all environment variables that judges need where they are asked; none without a judge."""
    listed = list(tables)
    if not listed:
        return []
    allowed = [name for table in listed if is_array(table.get("env_allowlist")) for name in table["env_allowlist"]]
    return [*judge_secrets(listed), *allowed, *NETWORK_VARIABLES]


class Judging:
    """Makes the judges of one set of tables. Limits are shared by all trials of a process.

    ``prices`` price the replies of judges that tell tokens and model but no cost.
    """

    def __init__(
        self, tables: Mapping[str, PluginTable], limits: Limits, cache: Path | None, prices: PriceTable | None = None
    ) -> None:
        self._prices = prices or PriceTable()
        self._limits = limits
        self._cache = cache
        names = judge_secrets(table.config for table in tables.values())
        self._redactor = Redactor(credential_values(dict(os.environ), names))

    def make(self, name: str, table: PluginTable, create: Callable[[PluginTable], Judge[Any]]) -> PatientJudge:
        """Return the judge of a table; ``create`` makes its plugin from the plugin's own keys."""
        from evalwright.judging.cache import ReplyCache
        from evalwright.judging.patient import PatientJudge
        from evalwright.suite.shape import JudgeShape

        shared, own = split_table(table.config)
        inner = create(PluginTable(use=table.use, config=own))
        shape = JudgeShape.model_validate(shared)
        cache = ReplyCache(self._cache) if self._cache else None
        return PatientJudge(inner, name, shape, limits=self._limits, cache=cache, redactor=self._redactor, prices=self._prices)
