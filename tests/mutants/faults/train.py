TABLE = r"""
copy_job
    steps or COPY_TRAINING["steps"] -> COPY_TRAINING["steps"]  # --steps ignored
    copy_batches(seed, steps, -> copy_batches(1, steps,  # another seed
text_job
    steps or r.steps -> r.steps  # --steps ignored
translation_recipe
    NUMBER_WORDS if name == "numbers" else TRANSLATION_RECIPES[name]
        TRANSLATION_RECIPES["spelling" if name == "numbers" else name]
            # another model for numbers
translation_job
    steps or r.steps -> r.steps  # --steps ignored
    numbers_of("test", 2000) -> numbers_of("train", 2000)  # numbers it saw
refinement_job
    steps or STEPS[kind] -> 50  # --steps ignored
    refinement_model(kind, -> refinement_model("autoregressive",  # another model
classification_job
    steps or r.steps -> r.steps  # --steps ignored
    make_classifier("encoder", task, r, seed)
        make_classifier("encoder", task, r)  # another seed
make_job
    translation_job(steps, seed, task) -> copy_job(steps, seed)  # another task
    if large and task -> if not large and task  # the other size
write_curve
    writer.writeheader() -> pass  # numbers without names
    folder / "curve.png" -> folder / "curve.svg"  # no picture
share
    tensor[rank::world] -> tensor[:: world]  # all read the same rows
    tensor[rank::world] -> tensor  # nothing shared
shared_loss
    world * job.size(own) / job.size(batch) -> 1.0  # processes count alike
    whole / world - part.detach() -> 0.0 * whole  # its own share told
    number + rank -> number  # all drop the same
    with torch.random.fork_rng(gpus): -> if True:  # states drift apart
    torch.randint(2**62, ()) -> 0  # the same masks in each step
write_whole
    beside.unlink(missing_ok=True) -> pass  # half a file left
    path.with_name(path.name + ".part") -> path  # overwritten at once
read_task
    fields["task"] != task -> False  # another task
    not path.is_file() -> False  # ids without meaning
    or not isinstance(fields[name], kind) ->  # any type
    name not in fields or -> name in fields and  # no seed
    (CUTTING if "source" in fields else {}) -> {}  # merges that are no list
    not isinstance(fields, dict) or ->  # a list
read_utf8
    utf-8-sig -> utf-8  # a mark is a letter
usable_device
    torch.zeros(1, device=device).item() -> pass  # a device that isn't there
    .partition("\\n")[0] ->  # several lines
_full_disk
    error.errno in FULL -> False  # the full disk not named
    error = error.__context__ -> error = None  # PyTorch's error hides it
load_translator
    WordCutter if task == "numbers" else Cutter -> Cutter  # numbers in letters
    "source" not in fields -> False  # a copy task translates
    load_checkpoint(checkpoint, model) -> pass  # untrained
translate_lines
    print(f"line {number}: left out {unknown!r}, never seen", file=sys.stderr)
        pass  # letters silently left out
parse
    options.translate and not options.resume -> False  # no model
    other and not options.translate and there.exists() -> False  # a run overwritten
    not options.resume or options.resume.resolve() != there.resolve()
        not options.resume  # another checkpoint takes its place
    options.resume and not options.resume.is_file() -> False  # no checkpoint
train
    setattr(options, name, fields[name]) -> pass  # another seed goes on
    write_whole(checkpoint, start.read_bytes()) -> pass  # begins anew elsewhere
    write_whole(previous(checkpoint), previous(start).read_bytes())
        pass  # only the first process finds the one before
    precision=PRECISIONS[options.precision] -> precision=None  # precision
    save_every=options.save_every -> save_every=None  # saved at the end alone
main
    lines.pop() -> pass  # a line too many
    (options.folder / name).unlink(missing_ok=True) -> pass  # half a checkpoint left
"""
