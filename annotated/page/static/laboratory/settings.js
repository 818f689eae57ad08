// The settings, what they are called, and what may be said of them before any run.
//
// Needs no page. `base` are the settings of the whole model; `it` is an experiment of
// laboratory.json.

const SWITCHES = { // label, one line of help, choices, and what a switch that is off is called
  task: ["Task", "What the model should do with the word: copy, reverse or sort it.", { copy: "copy", reverse: "write backwards", sort: "sort" }],
  words: ["Words", "What it is trained on: words of one length from ten letters, as in the experiments, or of 3 to 8 letters from the whole alphabet, which takes several times as long.", { few: "one length, a to j", any: "any, 3 to 8 letters" }],
  model: ["Model", "An encoder reads the word, and a decoder writes the answer. A decoder alone does both, in one row of symbols.", { "encoder-decoder": "encoder and decoder", decoder: "decoder alone" }],
  layers: ["Layers", "How many times in a row each letter gathers from the others and is worked on. A layer has two or three blocks.", { 1: "1", 2: "2", 3: "3" }],
  heads: ["Heads", "How many places a layer can look at in different ways at once.", { 1: "1", 2: "2", 4: "4", 8: "8" }],
  width: ["Width", "How many numbers stand for each letter. The heads share them out: of 32, each of 4 heads gets 8.", { 16: "16", 32: "32", 64: "64" }],
  positions: ["Positions", "How a letter says which place it has in the word: with fixed waves (sinusoidal), with numbers that are learned, or by turning what attention compares (rotary). Chapter 5.", { none: "none", sinusoidal: "sinusoidal", learned: "learned", rotary: "rotary" }],
  norm: ["Normalisation", "Keeps numbers at one size, before a block (pre-norm) or after it (post-norm): chapter 6.", { none: "none", pre: "pre-norm", post: "post-norm" }],
  smoothing: ["Label smoothing", "The model should be sure of the right letter, but not entirely: chapter 7.", { 0: "none", 0.1: "0.1" }],
  causal: ["Causal mask in training", "Hides the letters that come later in the answer: chapter 4.", null, "no causal mask"],
  scaled: ["Scores ÷ √k", "Divides what attention compares by √k; k is how many numbers one head has: chapter 2.", null, "no ÷ √k"],
  residual: ["Residuals", "Each block adds its result to what it read; without residuals, the result replaces it: chapter 6.", null, "no residuals"],
  feed_forward: ["Feed-forward networks", "A small network that works on each letter by itself: chapter 6.", null, "no feed-forward"],
  warmup: ["Warm-up", "The learning rate rises over the first 50 steps: chapter 7.", null, "no warm-up"],
  rate: ["Learning rate", "How far each step of training moves the model’s numbers: chapter 7."],
  seed: ["Seed", "Where the random numbers begin: the model’s first ones, and the words."],
};

// What one may expect of switches of one's own, and the least share of words for it.
const OWN = { "most new words right": 0.9, "some of them": 0.1, "hardly a word": 0 };
const TYPED = { // a number that is typed: what it may be
  rate: [(x) => x > 0 && x <= 10, "a number above 0 and up to 10, such as 0.005"],
  seed: [(x) => Number.isInteger(x) && x >= 0 && x < 1e6, "a whole number from 0 to 999999"],
};

// What the words mean that stand in brackets, as [loss], and others.
const termsFor = (base) => ({
  Attention: "For each letter that it writes, the model spreads a weight of 100 % over the letters it can see. A head is one such spread.",
  Encoder: "The part of the model that reads the word. The decoder is the part that writes the answer.",
  Block: "One stage of a layer: attention, which fetches from other letters, or a feed-forward network, which works on each letter by itself.",
  Score: "How well a letter fits what a head is looking for.",
  Softmax: "Turns scores into weights that add up to 100 %. The larger a score, the larger its share.",
  Loss: `How surprised the model is by each right letter. It is −ln p, where p is the probability the model gave the right letter. (The unit is the nat; 1 nat is 1.44 bits.) Blind guessing costs ln ${base.letters} = ${Math.log(base.letters).toFixed(2)} for each letter and nothing for the end ■, on average ${guessing(base).toFixed(2)}. An untrained model starts above that: it is sure of the wrong letters.`,
  "Post-norm": "Normalisation after each block’s result is added, as in the first Transformer. Pre-norm, the usual one today, normalises what a block reads.",
  "By itself": "The model sees only what it has written so far. In training it always sees the right letters so far, and only its next letter is judged.",
  Gradient: "For every number in the model: how the loss would change if that number grew a little. Training moves each number in the direction that lowers the loss.",
  Step: "The model reads 32 words, and all its numbers move a little.",
  Adam: "The usual rule for such a step (an optimiser). It divides each gradient by its usual size.",
  PyTorch: "The software in which the chapters of this book build their models.",
});

function called(name, value) {
  const [label, , options, off] = SWITCHES[name];
  return value === false ? off : `${label.toLowerCase()}: ${value === true ? "on" : options ? options[value] : value}`;
}

const apart = (one, other) => Object.keys(SWITCHES).filter((name) => one[name] !== other[name]);
const changes = (settings, base) => apart(settings, base).map((name) => called(name, settings[name]));
const difference = (settings, base) => changes({ ...settings, seed: base.seed }, base).join(", ") || "everything on";
const same = (one, other) => apart(one, other).every((name) => name === "seed");

// With other words other settings change as well.
function withWords({ base, file }, settings) {
  const changed = Object.keys(file.any).map((name) => [name, (settings.words === "any" ? file.any : base)[name]]);
  return { ...settings, ...Object.fromEntries(changed) };
}
const control = (base, it) => ({ ...base, ...it.control });

// What a model knows that ignores what it reads: every letter is as likely, and every
// length of a word.
const lengths = ({ shortest, longest }) => Array.from({ length: longest - shortest + 1 }, (_, i) => shortest + i);
const usual = (base) => mean(lengths(base));
const guessing = (base) => (usual(base) * Math.log(base.letters) + Math.log(lengths(base).length)) / (usual(base) + 1);

// Lengths of words and their letters, as a reader sees them.
const sizes = ({ shortest, longest }) => (shortest < longest ? `${shortest} to ${longest}` : String(longest));
const ending = ({ letters }) => String.fromCharCode(96 + letters);

// The least loss of a model that knows the letters of a word, and not their order: of
// n letters, n! / (m! m'! …) orders are equally likely, with m the number of each.
function floor(settings) {
  const { positions, model, task, letters, smoothing } = settings;
  if (positions !== "none" || model === "decoder" || task === "sort" || smoothing) return null;
  const orders = (n) => {
    let total = 0, ways = 1, logOfFactorial = 0;
    for (let m = 0; m <= n; m += 1) { // m of n letters are a given one, by chance
      if (m > 0) {
        logOfFactorial += Math.log(m);
        ways *= (n - m + 1) / m;
      }
      total -= letters * ways * (1 / letters) ** m * (1 - 1 / letters) ** (n - m) * logOfFactorial;
    }
    return total + logOfFactorial;
  };
  return mean(lengths(settings).map(orders)) / (usual(settings) + 1);
}
