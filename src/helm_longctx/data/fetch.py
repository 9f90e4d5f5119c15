"""Gets the sources of data that tasks name."""

from collections.abc import Iterable

from helm_longctx.data.download import Source
from helm_longctx.data.release import ReleaseFile, ensure_release_files
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError


def ensure(sources: Iterable[Source], root: DataRoot, command: str) -> None:
    """Download the files that sources lack, reading each archive once, or raise an `InputError`."""
    # Tasks of a category can name the same source.
    distinct = {tuple(source.paths): source for source in sources}.values()
    absent = [source for source in distinct if not source.is_present(root)]
    if absent and root.mirror:
        raise root.missing_error([path for source in absent for path in source.paths], command)
    for source in absent:
        if not isinstance(source, ReleaseFile):
            source.ensure(root, command)
            source.is_present(root)  # this tells NLTK where its model is now
    files = [source for source in absent if isinstance(source, ReleaseFile)]
    # The files of a release are fetched together, because each call reads its archive from the start.
    for one in {file.release for file in files}:
        ensure_release_files(
            one, [file.path for file in files if file.release == one], root, command
        )


def find_lacking(sources: Iterable[Source], root: DataRoot, command: str) -> dict[str, InputError]:
    """Do what `ensure` does, but go on after a failure. Return the error of each file that is missing, by its path."""
    groups: dict[object, list[Source]] = {}
    for source in sources:
        key = source.release if isinstance(source, ReleaseFile) else tuple(source.paths)
        groups.setdefault(key, []).append(source)
    errors: dict[str, InputError] = {}
    for group in groups.values():
        try:
            ensure(group, root, command)
        except InputError as error:
            errors |= dict.fromkeys((path for source in group for path in source.paths), error)
    return errors
