TABLE = r"""
DataError
    DataError(OSError) -> DataError(Exception)  # not an error of files
File
    size: int  #: bytes\n    checksum: str
        checksum: str\n    size: int  # size and checksum swapped
Dataset
    licence: str  #: under what terms it may be used\n    citation: str
        citation: str\n    licence: str  # licence and citation swapped
cache_folder
    os.environ.get("ANNOTATED_DATA") or ->  # environment ignored
fetch
    in files or rows] -> in rows]  # all files always
_fetch
    in file.mirrors: -> in file.mirrors[:1]:  # one mirror
    file.checksum, **settings -> None, **settings  # checksum not compared
    (requests.RequestException, ValueError)
        requests.RequestException  # wrong checksum ends it
        ValueError  # a dead mirror ends it
    timeout=TIMEOUT -> timeout=None  # waits for ever
    cache_folder() / name -> cache_folder()  # data sets share a folder
banner
    if name is None: -> if True:  # always on board
_is_right
    and pooch.file_hash(str(path), algorithm) == wanted ->  # checksum not compared
multi30k
    f"{stem}.{source}.gz", f"{stem}.{target}.gz"
        f"{stem}.{target}.gz", f"{stem}.{source}.gz"  # swapped
    "validation": "val" -> "validation": "train"  # validates on training data
    "test": "test_2016_flickr" -> "test": "val"  # tests on validation data
tinyshakespeare
    * 9 // 10 -> * 8 // 10  # eight tenths
    else text[end:] -> else text[end - 1 :]  # overlap
rotten_tomatoes
    "rt-polarity.neg", "rt-polarity.pos"
        "rt-polarity.pos", "rt-polarity.neg"  # labels swapped
    r"\w+", sentence.lower()
        r"\S+", sentence.lower()  # twins with other punctuation in two splits
    in sorted(kept)] -> in kept]  # negative ones first
    (digest[1:], sentence, label)
        (bytes([label]), sentence, label)  # ordered by label
film_ratings
    json.loads(ratings[i]) -> json.loads(ratings[i])[::-1]  # backwards
    for key in known if -> for key in sorted(known) if  # another order
    "GroundTruth"), last_columns("anonDataRatings")
        "anonDataRatings"), last_columns("anonDataRatings")  # no text is known
_letters
    sentence.lower() -> sentence  # capitals count
    r"[a-z0-9]" -> r"\S"  # signs count
imdb
    match[1] == "pos" -> match[1] == "neg"  # labels swapped
    in sorted(reviews)] -> in reviews]  # order of the archive
enwik8
    (95, 100) -> (90, 100)  # tests on validation data
    content[len(content) * first // 100 : -> content[:  # always from the start
_lines
    io.StringIO(content.decode(), newline="\\n")
        content.decode().splitlines()  # sentences cut
"""
