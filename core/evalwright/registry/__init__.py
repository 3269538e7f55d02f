"""Find plugins by name without importing them, load the one that is wanted, check it and give it its configuration."""

from typing import TYPE_CHECKING

from evalwright.lazy import lazy

if TYPE_CHECKING:
    from evalwright.registry.catalog import GROUPS, Catalog, Listing
    from evalwright.registry.configuring import configuration_problems, configured, model_problems, unknown_key
    from evalwright.registry.host import PluginHost
    from evalwright.registry.loading import BASES, Loaded, Registry
else:
    __getattr__ = lazy(
        __name__,
        {
            ".catalog": "GROUPS Catalog Listing",
            ".configuring": "configuration_problems configured model_problems unknown_key",
            ".host": "PluginHost",
            ".loading": "BASES Loaded Registry",
        },
    )

__all__ = [
    "BASES",
    "GROUPS",
    "Catalog",
    "Listing",
    "Loaded",
    "PluginHost",
    "Registry",
    "configuration_problems",
    "configured",
    "model_problems",
    "unknown_key",
]
