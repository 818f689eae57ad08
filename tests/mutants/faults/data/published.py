TABLE = r"""
published_files
    if not _is_right(path, file): -> if False:  # any bytes
    if not path.is_file(): -> if False:  # a missing file is read
    return [_fetch(name, file) for file in files] -> return []  # nothing is fetched
    / name / file.name for file -> / file.name for file  # another folder
"""
