"""Faults of annotated/page/ch17b.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "run_of": [
        ("\"causal\": causal}", "\"causal\": True}", "always causal"),
    ],
    "lengths": [
        ("run[\"length\"] for", "run[\"MB\"] for", "not lengths"),
    ],
    "memory_figure": [
        ("run_of(record, way, n)", "run_of(record, way, n, False)", "not causal"),
        ("ends[\"written out\"] / ends[\"fused\"]",
         "ends[\"written out\"] / ends[\"tiled\"]", "another ratio"),
        ("t[-1], False)", "t[-1])", "with a mask, too"),
        ("{MB[-1]:,.0f}\")", "{MB[0]:,.0f}\")", "the other end's value"),
    ],
    "row_picture": [
        ("scores.exp()", "scores.softmax(0)", "weights"),
    ],
    "steps_table": [
        ("log {m.exp():.0f}", "log {m:.0f}", "the logarithm twice"),
    ],
    "walk_numbers": [
        (" + 0.0", "", "−0"),
        ("(10 * scores).round() / 10", "scores", "digits that aren't shown"),
    ],
    "walk_order": [
        ("b <= a", "b < a", "no diagonal"),
        (" or not causal", "", "always causal"),
    ],
    "values_of": [
        ("a * size, (a + 1) * size", "b * size, (b + 1) * size", "rows of the keys"),
        ("[:, : end - size]", "[:, :end]", "nothing is rescaled"),
        ("| (not causal)", "| causal", "the mask turned over"),
        ("[rows, :end], mask", "[rows, :end] * 0, mask", "equal weights"),
    ],
    "walk_explorer": [
        ("(last + 1) // 2, last}", "(last + 1) // 2}", "the end isn't checked"),
        ("COUNT * COUNT + 1), 1)", "COUNT * COUNT + 1), 3)", "gives the answer away"),
    ],
    "multiplications": [
        ("2 * t * t * k", "t * t * k", "one product"),
    ],
    "trips": [
        ("HALF * t * t", "t * t", "numbers, not bytes"),
        ("(\"scores\", matrix, True)", "(\"scores\", matrix, False)",
         "scores never come back"),
        ("ceil(t / size)", "(t // size)", "the last tile is free"),
        ("times * 2 * rows", "2 * rows", "keys travel once"),
    ],
    "bytes_moved": [
        ("count for _, count, _ in", "1 for _ in", "trips, not bytes"),
    ],
    "megabytes": [
        ("count >= 1e7", "count >= 1e9", "too many digits"),
    ],
    "tile_bytes": [
        ("3 * HALF", "2 * HALF", "no values"),
        ("(k + size)", "k", "no scores"),
        ("BYTES *", "HALF *", "scores in half precision"),
    ],
    "pace": [
        ("2 * multiplications", "multiplications", "no additions"),
        ("(None, size)", "(size, None)", "exchanged"),
    ],
    "lanes": [
        ("(bytes_moved(t, k, size))", "(bytes_moved(t, k))", "always written out"),
        ("\"into\": into", "\"into\": True", "nothing comes back"),
    ],
    "trips_explorer": [
        ("needs / 1024", "needs / 1000", "another KB"),
        ("needs <= A100", "needs > A100", "turned over"),
        ("lanes(t, k, size)", "lanes(t, k, 256)", "the slider moves nothing"),
        ("TILES, 256)", "TILES, 128)", "gives the answer away"),
    ],
    "time_table": [
        ("for causal in (False, True)", "for causal in (True, False)", "exchanged"),
    ],
    "seconds_by_size": [
        ("median(", "max(", "the slowest"),
    ],
    "ways_said": [
        ("min(by_size, key=by_size.get)", "max(by_size, key=by_size.get)", "slowest"),
        ("out[True] / out[False]", "out[False] / out[True]", "upside down"),
        ("new_matrices(True)", "new_matrices(False)", "a mask makes none"),
    ],
    "Matrices.__torch_dispatch__": [
        (" and place not in given", "", "views count, too"),
        ("result.numel() == self.count and ", "", "all tensors count"),
    ],
    "new_matrices": [
        ("if causal else None", "if not causal else None", "exchanged"),
        (".sum().backward()", "", "forward only"),
    ],
    "parts_of": [
        ("median(run[\"seconds\"])", "max(run[\"seconds\"])", "the slowest"),
        ("median(run[part])", "min(run[part])", "the fastest"),
        ("total - sum(parts)", "total", "the rest is all"),
        ("max(total - sum(parts), 0.0)", "total - sum(parts)", "less than nothing"),
    ],
    "around": [
        (" - parts[\"products\"]", "", "products, too"),
    ],
    "parts_figure": [
        ("left += seconds", "left += 0", "bars over each other"),
        ("\"fill\": False, ", "", "the kernel looks like products"),
        ("len(parts) > 1", "parts", "not said that it isn't split"),
    ],
    "parts_said": [
        ("* config[\"heads\"] *", "*", "one head's matrix"),
        ("loop['passes over scores']", "out['passes over scores']", "another way's"),
        ("around(loop)", "around(out)", "another way's rest"),
    ],
    "check_parts": [
        ("0.9 < fused", "0 < fused", "a much faster kernel"),
        ("/ parts[\"products\"] < 1.1", "/ parts[\"products\"] < 9", "any kernel"),
        ("around(parts) > 0.3 * parts[\"products\"]", "True", "nothing to save"),
        ("out[\"fresh memory\"] > 2 * out[\"passes over scores\"]", "True",
         "memory is free"),
        ("loop[\"fresh memory\"] < 0.3 * out[\"fresh memory\"]", "True",
         "the loop saves none"),
        ("loop[\"passes over scores\"] > out[\"passes over scores\"]", "True",
         "the loop's passes are cheap"),
        ("tile_bytes(64, 128) <= A100[\"bytes\"]", "0 < A100[\"bytes\"]",
         "128 need not fit"),
        ("< tile_bytes(64, 256)", "", "256 may fit"),
    ],
    "check_record": [
        ("< 4.5", "> 0", "any growth upwards"),
        ("3.5 <", "0 <", "any growth"),
        ("MB[way, t] / MB[way, t // 2] < 2.3", "True", "tiles may grow"),
        ("and fused < loop < out", "", "the loop may be anywhere"),
        ("64 <= best <= 512", "True", "any size may be best"),
        ("seconds[max(seconds)] > 1.3 * seconds[best]", "True", "all alike"),
    ],
    "saved_ways": [
        ("fused(is_causal=True, dropout_p=0.1)", "fused(is_causal=True)",
         "without dropout"),
        ("asked(x, True)", "asked(x, False)", "weights not asked for"),
    ],
    "saved_table": [
        ("4 * t * t * BYTES", "t * t * BYTES", "one matrix"),
    ],
    "check_saved": [
        ("abs(mask - matrix) < 0.1 * matrix", "mask > 0", "any mask"),
        ("saved[way] // (4 * matrix) == each", "saved[way] > 0", "any number is kept"),
        ("asked - unasked > 2.5 * matrix", "asked > 0", "asking is free"),
        ("saved[\"our loop\"] < 1.1 * least", "True", "our loop may keep all"),
    ],
}
