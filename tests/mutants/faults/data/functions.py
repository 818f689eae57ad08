TABLE = r"""
module_split
    module.split(".")[0].encode() -> module.encode()  # a package in two splits
library_functions
    module_split(f.module) == split -> True  # one text in all splits
functions_of
    _Bare().visit(tree) -> tree  # with docstrings
_all_functions
    disguised(function.tokens, 0), function
        function.tokens, function  # copies under other names
    if len(function.tokens) in LENGTHS -> if function.tokens  # any length
every_function
    functions_of(text, name) -> functions_of(text, "")  # of no module
labels_of
    ast.For | ast.While -> ast.For  # while is no loop
    value is not None for value -> True for value  # a bare return counts
    called & STREAMS -> read & STREAMS  # methods don't read
    parameters & bound -> parameters & read  # reading is rebinding
    - {"self", "cls"} ->  # self counts as ignored
    - read - bound -> - read  # what is rebound counts as ignored
tokens_of
    tokens.append("0") -> tokens.append(token.string)  # numbers differ
    tokens.append('"…"') -> tokens.append(token.string)  # strings differ
_Bare.visit_FunctionDef
    node.decorator_list, node.returns = [], None
        node.decorator_list = []  # the type of what is returned
    node.body[1:] or [ast.Pass()] -> node.body  # with its docstring
disguised
    if not keyword.iskeyword(token) -> if token  # keywords stay
    and token not in known ->  # one name, two disguises
    random.Random(seed) -> random.Random(0)  # the seed ignored
"""
