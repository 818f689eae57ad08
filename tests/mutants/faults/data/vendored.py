TABLE = r"""
vendored_file
    vendor/{name} -> {name}  # another folder
package_file
    found != sha256 -> not found  # any bytes
    return _download(name, sha256) -> raise FileNotFoundError(path)  # left out for good
_download
    f"sha256:{sha256}", ** -> None, **  # any bytes
    (requests.RequestException, ValueError)
        requests.RequestException  # a wrong checksum ends it
        ValueError  # a version without a tag ends it
_addresses
    f"v{about['Version']}", "HEAD" -> "HEAD", "HEAD"  # not the version installed
    f"v{about['Version']}", "HEAD" -> f"v{about['Version']}",  # never before the tag
"""
