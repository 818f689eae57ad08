"""Faults of annotated/checkpoints.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "save_checkpoint": [
        ('path.with_name(path.name + ".part")', "path", "written over the old one"),
        ("os.fsync(file.fileno())", "pass", "not on the disk"),
        ("    beside.replace(path)\n", "", "not moved to its place"),
        ('"history": list(history)', '"history": []', "history not saved"),
        ("_present(model, optimizer, schedule, scaler)",
         "_present(model, optimizer, None, scaler)", "schedule not saved"),
    ],
    "load_checkpoint": [
        ("weights_only=True)", "weights_only=False)", "a stranger's code runs"),
        ("    except FileNotFoundError:\n        raise\n", "",
         "no file is a damaged file"),
        ("    except Exception as error:", "    except KeyError as error:",
         "damaged files unnamed"),
        ("saved.get(name) != kinds.get(name):", "False:", "states of another kind"),
        ("saved | kinds if optimizer else kinds", "kinds", "goes on without schedule"),
        ("saved | kinds if optimizer else kinds", "saved | kinds",
         "a model alone is refused"),
        ("islice(skip, used)) < used", "islice(skip, used)) < 0", "batches end early"),
        ("        part.load_state_dict(content[name])\n",
         '        name == "model" or part.load_state_dict(content[name])\n',
         "model not restored"),
        ("        part.load_state_dict(content[name])\n",
         '        name != "model" or part.load_state_dict(content[name])\n',
         "optimiser not restored"),
        ("    if optimizer is not None:\n", "    if False:\n",
         "random numbers not restored"),
        ("    if optimizer is not None:\n", "    if True:\n",
         "random numbers of a model for use"),
    ],
    "_kinds": [
        ('| {"model": str(getattr(parts["model"], "config", None))}', "",
         "another config"),
    ],
    "_restore_random_state": [
        ('    torch.set_rng_state(state["torch"])\n', "", "torch not restored"),
        ('    numpy.random.set_state(state["numpy"])\n', "", "numpy not restored"),
        ('    random.setstate(state["python"])\n', "", "Python not restored"),
        ("[: torch.cuda.device_count()]", "", "saved with more GPUs"),
    ],
}
