TABLE = r"""
official_gpt2
    not download and not (cache -> not (cache  # never downloaded
    SIZES["small"] -> SIZES["medium"]  # another size
"""
