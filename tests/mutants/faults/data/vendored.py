TABLE = r"""
vendored_file
    found != sha256 -> not found  # any bytes
    except OSError -> except KeyError  # no file
    but {found} -> but another  # which one is not told
"""
