TABLE = r"""
tokenize
    TOKEN.match(text, place) -> TOKEN.search(text, place)  # skipped
    require.that(found, f -> print(found, f  # not told
is_atom
    token not in SPECIALS and ->  # specials are atoms
    token[0] == "[" or ->  # no charged atoms
atom_places
    [i + 1 for i in places if i > arrow]
        [i for i in places if i > arrow]  # without [CLS]
    tokens.count(">>") == 1 -> ">>" in tokens  # two arrows
    before and behind, f -> before, f  # no product
parse
    last, order = len(atoms) - 1, 1 -> last = len(atoms) - 1  # a double bond goes on
    (".", ">>") -> (">>",)  # molecules are bound
    last = branches.pop() -> branches.pop()  # the branch goes on
    max(order, before) -> before  # a ring's bond said at its end
    token.strip("%").isdigit() -> token.isdigit()  # ring 10
    require.that(not left, f -> str(f  # a ring left open
    require.that(branches, f -> str(f  # a bracket too many
_element
    int(found[2] or 1) -> int(found[2] or 0)  # [nH] without hydrogen
    if atom == "c" else 0 ->  # aromatic nitrogen with hydrogen
    if n >= orders -> if n > orders  # one too many
alike
    sorted(colours[j] for j in near[i])
        [colours[j] for j in near[i]]  # neighbours in order
    (colour, sorted -> (0, sorted  # own colour forgotten
    colours = finer -> return finer  # one round
Reaction.right
    may[atom] |= -> may[atom] =  # the last of those alike
    one == before[origin] -> i == origin  # its origin alone
reactions
    origins.split() -> origins.split()[::-1]  # from the other end
_rows
    .startswith("#") -> .startswith("!")  # the head is a reaction
respelled
    one.origins[int(atom)] for -> int(atom) for  # the product's own numbers
vocabulary
    in enumerate(tokens) -> in enumerate(tokens, 1)  # counted from 1
_vendored
    FILES[name] -> FILES['vocab.txt']  # the checksum of another file
reaction_model
    load_albert( -> __import__('annotated').bert.Bert(CONFIG) or (  # random
encode
    "[CLS]", *tokenize(text), "[SEP]" -> *tokenize(text)  # without ends
    ids.get(token, ids["[UNK]"]) -> ids[token]  # unknown refused
attention_maps
    for one in calls] -> for one in calls[:1]]  # the first layer alone
links
    maps[:, :, behind][..., before] -> maps[:, :, before][..., behind]  # the other way
right_links
    dim=-1 -> dim=0  # atoms first
"""
