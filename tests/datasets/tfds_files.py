"""Small data sets as tensorflow-datasets prepares them, for tests."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

Examples = Iterable[tuple[int | str, dict[str, Any]]]


def prepared(
    builder: str,
    number: str,
    configs: Sequence[str],
    columns: Callable[[Any], dict[str, Any]],
    splits: dict[str, Callable[[], Examples]],
) -> dict[str, bytes]:
    """The files of a data set of this name and version, by their path: the same splits in every configuration.

    columns: the features of an example, given those of tensorflow-datasets; splits: keys and examples.
    """
    import tensorflow_datasets as tfds
    from etils import epath

    with tempfile.TemporaryDirectory() as folder, tfds.core.registered.skip_registration():

        class Made(tfds.core.GeneratorBasedBuilder):
            name = builder
            VERSION = tfds.core.Version(number)
            BUILDER_CONFIGS = [tfds.core.BuilderConfig(name=config) for config in configs]
            pkg_dir_path = epath.Path(folder)
            __module__ = "__main__"  # else its package is looked for

            def _info(self) -> Any:
                return self.dataset_info_from_configs(features=tfds.features.FeaturesDict(columns(tfds.features)))

            def _split_generators(self, manager: Any) -> dict[str, Examples]:
                return {part: examples() for part, examples in splits.items()}

            def _generate_examples(self) -> Examples:
                raise NotImplementedError("its splits are given")

        home = Path(folder) / "made"
        for config in configs:
            Made(config=config, data_dir=home, file_format="array_record").download_and_prepare()
        paths = [path for path in home.glob(f"{builder}/**/*") if path.is_file()]
        return {str(path.relative_to(home)): path.read_bytes() for path in sorted(paths)}
