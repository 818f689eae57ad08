TABLE = r"""
save_checkpoint
    path.with_name(path.name + ".part") -> path  # written over the old one
    os.fsync(file.fileno()) -> pass  # not on the disk
    beside.replace(path)\n ->  # not moved to its place
    _copy(path, previous(path))\n -> pass\n  # the one before isn't kept
    previous(path).unlink(missing_ok=True) -> pass  # one before of another run
    "history": list(history) -> "history": []  # history not saved
    _present(model, optimizer, schedule, scaler, loss)
        _present(model, optimizer, None, scaler, loss)  # schedule not saved
        _present(model, optimizer, schedule, scaler, None)  # loss not saved
_inner
    .replace("_orig_mod.", "") ->  # a compiled model's names
    .removeprefix("module.") ->  # a parallel model's names
    replace("_orig_mod.", "").removeprefix("module.")
        removeprefix("_orig_mod.").removeprefix("module.")  # one inside the other
_config
    getattr(model, "module", model) -> model  # a parallel model has none
previous
    Path(path).name + ".before" -> "before"  # one for all runs of a folder
resume_checkpoint
    \n        print(f"{error}\\ngoing on from the one before, {start}")
        # silently from the one before
    \n        _copy(start, path) ->  # the damaged one becomes the one before
    except DamagedError -> except ValueError  # another run is passed over
_copy
    target.with_name(target.name + ".part") -> target  # half a copy in place
load_checkpoint
    own.get(_inner(n), n): value -> _inner(n): value  # into plain ones alone
    own.get(_inner(n), n): value -> own.get(n, n): value  # older files refused
    if changed := archive.testzip(): -> if changed := None:  # a flipped bit goes unseen
    weights_only=True) -> weights_only=False)  # a stranger's code runs
    \n    except FileNotFoundError:\n        raise ->  # no file is a damaged file
    except Exception as error: -> except KeyError as error:  # damaged files unnamed
    saved.get(name) != kinds.get(name): -> False:  # states of another kind
    saved | kinds if optimizer else parts -> parts  # goes on without schedule
    saved | kinds if optimizer else parts -> saved | kinds  # a model alone is refused
    if loss is not None and "loss" not in saved: -> if False:  # an old file is refused
    warnings.warn(f"{path} holds no state of the loss", stacklevel=2)\n
        # a loss begins anew and nobody says so
    islice(skip, used)) < used -> islice(skip, used)) < 0  # batches end early
    part.load_state_dict(content[name])\n
        name == "model" or part.load_state_dict(content[name])\n  # model not restored
        name != "model" or part.load_state_dict(content[name])\n
            # optimiser not restored
    if optimizer is not None:\n -> if False:\n  # random numbers not restored
    if optimizer is not None:\n -> if True:\n  # random numbers of a model for use
_kinds
    \n    kinds["model"] = _fields(_config(parts["model"])) ->  # another config
    {"loss": None} | kinds -> kinds  # like a file from before
_plain
    return getattr(value, "__qualname__", str(value))
        return value  # a file that can't be read
_differing
    if isinstance(saved, str): -> if False:  # old files are refused
    \n        if text is None:\n            return saved, now
        # a config that isn't a dataclass
    _plain(field.default) for -> field.default for  # a class and its name
    for field in newer} | saved
        for field in ()} | saved  # a new field may be anything
    if field.default is not MISSING ->  # a field without a default
    name in saved and ->  # a field that only this one has
    and saved[name] != now[name] ->  # fields that agree are named
_restore_random_state
    torch.set_rng_state(state["torch"])\n ->  # torch not restored
    \n    numpy.random.set_state(state["numpy"]) ->  # numpy not restored
    random.setstate(state["python"])\n ->  # Python not restored
    [: torch.cuda.device_count()] ->  # saved with more GPUs
"""
