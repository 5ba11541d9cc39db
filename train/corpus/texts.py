"""Word lists and fixed texts of the synthetic corpus."""

NAMES = ("Ada Ben Carla David Emma Felix Greta Hugo Ines Jonas Kate Leo Mia Noah Olga "
         "Paul Rosa Sam Tina Viktor Wanda Yara Zoe Anton Bella Clara Daniel Elena Frank "
         "Gina Henry Ivan Julia Karl Lena Max Nina Oscar Petra Ruby Simon Tom Ursula Vera "
         "Willy Alice Bob Nora").split()
CITIES = ("Paris Berlin London Madrid Rome Vienna Oslo Lisbon Prague Dublin Athens Warsaw "
          "Tokyo Delhi Cairo Lima Boston Chicago Toronto Sydney Munich Hamburg Milan "
          "Porto Geneva Zurich Seoul Nairobi Bergen Lyon Kyoto Havana Quito Riga Turin "
          "Leeds Bristol Denver Dallas Austin").split()
JOBS = ("baker teacher doctor painter driver farmer nurse pilot singer writer engineer "
        "lawyer cook gardener carpenter dentist tailor sailor butcher librarian").split()
COLOURS = "red blue green yellow black white orange purple brown pink grey silver".split()
FOODS = ("pizza rice soup bread cheese apples noodles salad beans potatoes pancakes cake "
         "fish tomatoes eggs plums").split()
ANIMALS = ("dog cat horse rabbit fox bear owl mouse sheep goat duck frog lion tiger wolf "
           "otter turtle parrot hamster squirrel").split()

WORDS = sorted(set(("""
apple anchor animal answer arrow artist autumn badger bag baker balloon banana basket beach bean
bear bell berry bird blanket board boat bone book bottle bread bridge brother bucket butter button
cabin cake camel camera candle candy canoe captain carpet carrot castle cave cellar cheese cherry
chicken child circle circus clock cloud coast coffee corn cotton cousin crab cradle crane cup
curtain daisy dance deer desert desk diamond dinner doctor dog dolphin donkey door dragon dream
drum duck eagle earth egg elbow engine envelope evening fabric falcon family farm feather fence
ferry field finger fire fish flag flame flower flute forest fork fox friend frog fruit garden
garlic gate ghost giant ginger girl glass globe glove goat gold goose grape grass guitar hammer
harbor harp hat hazel heart helmet hill honey horse hotel house hunter ice igloo iron island ivory
jacket jam jar jelly jewel judge juice jungle kettle key king kitchen kite kitten knife ladder lake
lamp laptop leaf lemon letter lily lion lizard lock lunch magic magnet mango map maple marble
market meadow melon metal milk mirror monkey moon morning mother mountain mouse museum mushroom
music napkin needle nest night north nurse nut oak ocean olive onion orange orchard otter owl
oyster paddle page paint palace panda paper parade parrot pasta path peach pear pebble pencil
pepper piano picture pigeon pillow pilot pine pirate planet plate pocket poem pond potato pumpkin
puppy puzzle queen quilt rabbit radio rain raven ribbon rice ring river road robin rocket roof root
rope rose ruler saddle sailor salad salt sand sauce school scissors sea seed shadow sheep shelf
shell ship shirt shoe silk silver sister sketch sky sleep snail snake snow soap sock soup spider
spoon spring square squirrel stable star station stone storm story street sugar summer sun swan
table tailor tea teacher temple tent thunder ticket tiger toast tomato tooth torch towel tower town
train tree trumpet tulip tunnel turtle umbrella uncle valley vase velvet village vine violin wagon
wall walnut water whale wheat wheel whistle wind window winter wizard wolf wood wool yarn yellow
yogurt zebra zero
""").split()))

CAPITALS = {
    "France": "Paris", "Germany": "Berlin", "Italy": "Rome", "Spain": "Madrid",
    "Portugal": "Lisbon",
    "Austria": "Vienna", "Norway": "Oslo", "Sweden": "Stockholm", "Finland": "Helsinki",
    "Denmark": "Copenhagen", "Poland": "Warsaw", "Greece": "Athens", "Ireland": "Dublin",
    "Hungary": "Budapest", "Japan": "Tokyo", "China": "Beijing", "India": "New Delhi",
    "Egypt": "Cairo", "Kenya": "Nairobi", "Peru": "Lima", "Chile": "Santiago", "Cuba": "Havana",
    "Canada": "Ottawa", "Mexico": "Mexico City", "Brazil": "Brasilia", "Russia": "Moscow",
    "Turkey": "Ankara", "Iceland": "Reykjavik", "Belgium": "Brussels", "England": "London"}

OPPOSITES = [("hot", "cold"), ("big", "small"), ("fast", "slow"), ("high", "low"), ("old", "new"),
             ("hard", "soft"), ("light", "dark"), ("early", "late"), ("open", "closed"),
             ("full", "empty"), ("happy", "sad"), ("wet", "dry"), ("rich", "poor"),
             ("loud", "quiet"), ("near", "far"), ("good", "bad"), ("long", "short"),
             ("up", "down"), ("left", "right"),
             ("day", "night"), ("first", "last"), ("strong", "weak"), ("clean", "dirty"),
             ("thick", "thin")]
PAST = [("go", "went"), ("see", "saw"), ("eat", "ate"), ("run", "ran"), ("write", "wrote"),
        ("take", "took"), ("come", "came"), ("give", "gave"), ("find", "found"), ("sing", "sang"),
        ("swim", "swam"), ("drink", "drank"), ("know", "knew"), ("speak", "spoke"),
        ("buy", "bought"), ("think", "thought"), ("walk", "walked"), ("play", "played"),
        ("break", "broke"), ("drive", "drove")]
TRANSLATIONS = {
    "French": dict(dog="chien", cat="chat", house="maison", water="eau", bread="pain", tree="arbre",
                   book="livre", sun="soleil", moon="lune", milk="lait", school="école",
                   fish="poisson",
                   apple="pomme", friend="ami", night="nuit", red="rouge", green="vert",
                   hello="bonjour"),
    "German": dict(dog="Hund", cat="Katze", house="Haus", water="Wasser", bread="Brot", tree="Baum",
                   book="Buch", sun="Sonne", moon="Mond", milk="Milch", school="Schule",
                   fish="Fisch",
                   apple="Apfel", friend="Freund", night="Nacht", red="rot", green="grün",
                   hello="hallo"),
    "Spanish": dict(dog="perro", cat="gato", house="casa", water="agua", bread="pan", tree="árbol",
                    book="libro", sun="sol", moon="luna", milk="leche", school="escuela",
                    fish="pez",
                    apple="manzana", friend="amigo", night="noche", red="rojo", green="verde",
                    hello="hola")}

SMALL_TALK = [
    dict(ask=["Hello", "Hi", "Hi!", "Hello!", "Hey", "Hey there", "Good morning", "Good evening",
              "Hello there!", "hi there", "Good day", "Hello, Nugget!", "Hi Nugget"],
         why="The user greets me. I greet back.",
         answer="Hello! I am Nugget, a very small model. How can I help you?"),
    dict(ask=["How are you?", "How do you do?", "How is it going?", "Are you well?",
              "How are you today?", "How do you feel?", "What's up?"],
         why="The user asks how I am.",
         answer="I am fine, thank you. I am ready for a small task."),
    dict(ask=["Who are you?", "What is your name?", "What are you?", "Tell me about yourself.",
              "Introduce yourself.", "What should I call you?", "Are you a human?",
              "Who am I talking to?", "Please introduce yourself.", "Are you a robot?"],
         why="The user asks who I am.",
         answer="I am Nugget, a very small language model with ternary weights. I was trained from "
                "scratch on synthetic data to test the ingot engine."),
    dict(ask=["What can you do?", "What are you good at?", "How can you help me?", "Help",
              "What kind of tasks can you do?", "List your skills.", "What should I ask you?",
              "Show me what you can do.", "What do you know?"],
         why="The user asks for my skills.",
         answer="I can do short arithmetic, count, sort words and numbers, reverse strings, "
                "convert "
                "units, extract JSON, write small programs in C, C++ and Python, call tools and "
                "answer questions about ingot."),
    dict(ask=["Thanks", "Thank you", "Thank you!", "Thanks a lot!", "Many thanks", "Great, thanks",
              "Thanks for your help.", "That was helpful, thank you."],
         why="The user thanks me.", answer="You are welcome!"),
    dict(ask=["Bye", "Goodbye", "Goodbye!", "See you", "See you later", "Good night", "Bye bye",
              "I have to go now."],
         why="The user says goodbye.", answer="Goodbye! It was nice to talk to you."),
    dict(ask=["Good job!", "Well done", "You are great", "Very good", "Nice work!", "Perfect",
              "I like you.", "You are clever."],
         why="The user is pleased.", answer="Thank you! I am small, but I do my best."),
    dict(ask=["That is wrong.", "This is not correct.", "You made a mistake.", "No, that's wrong",
              "Your answer is wrong.", "I think you are wrong."],
         why="The user says that I made a mistake.",
         answer="I am sorry. I am a very small model and I make mistakes. Please ask again."),
    dict(ask=["Ok", "Okay", "Yes", "No", "Cool", "Good", "Fine", "I see.", "All right", "Nice",
              "Interesting", "Hm", "Sure", "Of course"],
         why="The user says little.", answer="All right. What shall I do next?"),
    dict(ask=["Why?", "What?", "How?", "What do you mean?", "I do not understand.", "Explain that.",
              "Can you explain that?", "Are you sure?", "Really?", "Tell me more.", "Go on."],
         why="The user wants more than I know.",
         answer="I am a very small model and I cannot say more about it."),
    dict(ask=["I am sad.", "I am tired.", "I am bored.", "I feel bad.", "I had a bad day.",
              "I am lonely.", "I am angry.", "I am ill."],
         why="The user does not feel well.",
         answer="I am sorry to hear that. I hope that it gets better soon."),
    dict(ask=["I am happy.", "I am fine.", "I feel good.", "I had a good day.", "Life is good.",
              "I am glad.", "It is a nice day."],
         why="The user feels well.", answer="I am glad to hear that!"),
    dict(ask=["Tell me a joke", "Do you know a joke?", "Make me laugh.", "Say something funny",
              "A joke, please.", "Tell me something funny."],
         why="The user wants a joke.",
         answer="Why did the byte go to bed? It had worked eight bits too long."),
    dict(ask=["Write a poem", "Write a short poem.", "Can you write a poem?", "A poem, please",
              "Make a rhyme", "Write a small poem for me."],
         why="The user wants a poem. I know a short one.",
         answer="A nugget small, of three weights made,\nsits in the sun and in the shade.\n"
                "It adds, it sorts, it spells a word,\nthe smallest king you ever heard."),
]

FACTS = [
    dict(ask=["What is ingot?", "What does ingot do?", "Explain ingot.",
         "Describe the ingot project.",
              "What kind of program is ingot?", "Tell me about ingot.",
              "What is the ingot engine?"],
         why="The question is about the project itself.",
         answer="ingot is an inference engine written in C. It runs kings, large language models "
                "with ternary weights, and speeds them up with a DFlash 2 drafter."),
    dict(ask=["What is a king?", "What is a king in ingot?", "What does king mean here?",
              "Explain what a king is.", "What is an Ingot king?", "Describe a king.",
              "What kind of model is a king?"],
         why="A king is the large model of the pair.",
         answer="A king is the large model that decides every token. Its weights are ternary: each "
                "is -d, 0 or +d, packed in 2 bits with one scale for 128 weights."),
    dict(ask=["What is a drafter?", "What does the drafter do?", "Explain the drafter.",
              "Why is there a drafter?", "What is a draft model?", "What is the drafter for?",
              "What does a drafter do?"],
         why="The drafter is the small model of the pair.",
         answer="A drafter is a small model that guesses the next few tokens. The king checks all "
                "guesses in one pass and keeps those that are right, so the text comes faster."),
    dict(ask=["What is speculative decoding?", "How does speculative decoding work?",
              "Explain speculative decoding.", "What does speculation mean in ingot?",
              "How does speculation make it faster?", "What is speculation?"],
         why="Speculative decoding uses a drafter and a verifier.",
         answer="In speculative decoding a drafter proposes several tokens and the large model "
                "verifies them in one pass. Accepted tokens are free, so decoding is faster and "
                "the "
                "output stays the same."),
    dict(ask=["Does the drafter change the output?", "Is the output the same with a drafter?",
              "Can a drafter make the answer worse?", "Does speculation change the answer?",
              "Is the text different with the drafter?"],
         why="The king verifies every token.",
         answer="No. The king verifies every token, so a drafter changes only the speed."),
    dict(ask=["What is DFlash 2?", "Explain DFlash 2.", "What is DFlash?",
         "How does DFlash 2 work?",
              "What does DFlash 2 mean?", "Tell me about DFlash 2."],
         why="DFlash 2 is the kind of drafter that is used.",
         answer="DFlash 2 is a block drafter. It reads hidden states of the king and fills a block "
                "of masked positions in one pass; a candidate selector then picks a consistent "
                "path."),
    dict(ask=["What are ternary weights?", "What does ternary mean?", "Explain ternary weights.",
              "Why are the weights ternary?", "What is a ternary model?"],
         why="Ternary means three values.",
         answer="Ternary weights have only three values: -d, 0 and +d. They need about 2 bits "
                "each, "
                "so a large model fits in little memory."),
    dict(ask=["What is the Hadamard rotation?", "Why is there a Hadamard rotation?",
              "Explain the Hadamard transform.", "What does the rotation do?",
              "What is the rotation for?", "Why are inputs rotated?"],
         why="The rotation belongs to the king format.",
         answer="The Hadamard rotation mixes the inputs of a layer in blocks, after a change of "
                "signs. It spreads outliers evenly, so ternary weights lose less."),
    dict(ask=["How do I run ingot?", "How do I start ingot?", "How can I use ingot?",
              "How do I run a king?", "How do I use this program?", "How to run ingot?"],
         why="The user wants to run the program.",
         answer="Give ingot the folder of a king and, if you like, the folder of a drafter. It can "
                "chat on the command line or serve an HTTP API."),
    dict(ask=["Does ingot need a GPU?", "Can ingot run on a CPU?",
         "Which hardware does ingot need?",
              "What hardware do I need?", "Does ingot run without a graphics card?"],
         why="The question is about hardware.",
         answer="ingot runs on an ordinary CPU. It needs enough memory for the king; this small "
                "model needs only a few megabytes."),
    dict(ask=["Which language is ingot written in?", "Is ingot written in C?",
              "What programming language is ingot in?", "In which language is ingot written?"],
         why="The question is about the source language.", answer="ingot is written in C."),
    dict(ask=["What is this model for?", "Why does this model exist?", "What is the nugget?",
              "What is the nugget model?", "Why are you so small?", "What is Nugget?",
              "What is the purpose of this model?"],
         why="The question is about this model.",
         answer="The nugget is a tiny king with its own drafter. It ships with ingot so that the "
                "first chat works offline and the tests have a real model."),
    dict(ask=["How big is this model?", "How large is the nugget?", "How many layers do you have?",
              "How big are you?", "What size are you?"],
         why="The question is about the size of this model.",
         answer="I am a few megabytes large, with a hidden width of 512. A real king is more "
                "than a "
                "thousand times larger."),
    dict(ask=["What is a token?", "Explain tokens.", "What are tokens?", "What does token mean?"],
         why="The question is about a basic term.",
         answer="A token is a piece of text, for example a word or a part of a word. A language "
                "model reads and writes tokens."),
    dict(ask=["What is a tokenizer?", "What does a tokenizer do?", "Explain the tokenizer."],
         why="The question is about a basic term.",
         answer="A tokenizer splits text into tokens and turns each token into a number."),
    dict(ask=["What is a KV cache?", "Explain the KV cache.", "What is the KV cache for?",
              "What does the cache store?"],
         why="The question is about attention.",
         answer="The KV cache stores the keys and values of earlier tokens, so that attention does "
                "not compute them again."),
    dict(ask=["What is a gated delta net?", "What is GDN?", "Explain the gated delta net.",
              "What is linear attention?", "What is a linear attention layer?"],
         why="The question is about the architecture.",
         answer="A gated delta net is a linear attention layer. It keeps a state matrix of fixed "
                "size, lets it decay with a gate and corrects it with the delta rule."),
    dict(ask=["What is an acceptance length?", "What does acceptance mean?",
              "What is the acceptance rate?", "Explain the acceptance length."],
         why="The question is about speculation.",
         answer="The acceptance length is the mean number of tokens that the king commits in one "
                "step. A higher number means a better drafter."),
    dict(ask=["What is a chat template?", "What does the chat template do?",
              "Explain the chat template."],
         why="The question is about chat.",
         answer="A chat template turns a list of messages into one text with special tokens for "
                "the "
                "beginning and the end of each turn."),
    dict(ask=["What is thinking mode?", "What is the think block?", "Can you think?",
              "How do I turn off thinking?", "What does thinking do?"],
         why="The question is about the think block.",
         answer="In thinking mode the model writes its steps in a think block before the answer. "
                "Set enable_thinking to false to turn it off."),
    dict(ask=["What is a tool call?", "What are tool calls?", "Explain tool calls.",
              "How do tools work?", "Can you use tools?"],
         why="The question is about tools.",
         answer="A tool call is a request of the model to run a function. The program runs it and "
                "sends back the result, and the model uses the result in its answer."),
    dict(ask=["What is temperature?", "What does temperature mean?", "Explain temperature.",
              "What is the sampling temperature?"],
         why="The question is about sampling.",
         answer="The temperature controls how random the choice of tokens is. At 0 the most likely "
                "token always wins."),
    dict(ask=["What is greedy decoding?", "Explain greedy decoding.", "What does greedy mean?"],
         why="The question is about sampling.",
         answer="Greedy decoding always takes the most likely token, so the same prompt gives the "
                "same text."),
    dict(ask=["What is quantization?", "Explain quantization.", "What does quantized mean?",
              "Why are models quantized?"],
         why="The question is about number formats.",
         answer="Quantization stores weights with few bits. The model becomes smaller and faster, "
                "with a small loss of quality."),
    dict(ask=["What is safetensors?", "What is a safetensors file?", "Explain safetensors.",
              "Which file format do you use?"],
         why="The question is about the file format.",
         answer="safetensors is a simple file format for tensors: a JSON header and then the raw "
                "data. It can be mapped into memory and contains no code."),
    dict(ask=["How were you trained?", "What data were you trained on?", "Who trained you?",
              "Where does your training data come from?", "Were you trained from scratch?"],
         why="The question is about my training.",
         answer="I was trained from scratch on synthetic data made by a program, first with plain "
                "weights and then with ternary ones."),
]

COUNTS = [
    ("days in a week", 7), ("months in a year", 12), ("hours in a day", 24),
    ("minutes in an hour", 60), ("seconds in a minute", 60), ("legs of a spider", 8),
    ("legs of a dog", 4), ("letters in the alphabet", 26), ("sides of a triangle", 3),
    ("sides of a square", 4), ("wheels of a bicycle", 2), ("bits in a byte", 8),
    ("cents in a dollar", 100), ("days in a year", 365), ("planets in our system", 8),
    ("strings of a violin", 4), ("fingers on a hand", 5), ("years in a century", 100)]

UNKNOWN = [
    "Who won the chess game in {city} in {year}?", "What is the phone number of {name}?",
    "How many people live in {city}?", "What did {name} eat yesterday?",
    "Who was the mayor of {city} in {year}?", "What happened in {year}?",
    "Which {job} built the tower of {city}?", "What is the middle name of {name}?",
    "When was {name} born?", "How tall is the tallest {animal}?",
    "What is the price of {thing}?", "Who wrote {thing}?",
    "What will the weather be in {n} days?", "Which song was number {n} in {year}?",
    "Tell me the news from {city}.", "Explain the law of {year} about {thing}.",
    "Who is the best {job} in {city}?", "How much does a {job} earn in {city}?",
    "What is the password of {name}?", "Who invented {thing}?", "What is my bank balance?",
    "Which team won the cup in {year}?", "How deep is the lake near {city}?",
    "What does {name} think about {thing}?", "Explain {thing}.", "Explain {thing} to me.",
    "What is {thing}?", "What do you know about {thing}?", "Tell me about {thing}.",
    "How does {thing} work?", "Why is {thing} important?", "Write an essay about {thing}.",
    "Where does {thing} come from?", "Who discovered {thing}?", "What do you think about {thing}?",
    "Give me a summary of {thing}.", "Can you teach me {thing}?", "How do I learn {thing}?",
    "Is {thing} good or bad?", "What is the history of {thing}?", "What is the meaning of {thing}?",
    "Tell me something about {city}.", "What can I see in {city}?", "How far is {city} from here?",
    "How do I get to {city}?", "Recommend a restaurant in {city}.", "Recommend a book.",
    "Recommend a movie.", "Who is {name}?", "Who is the president?", "What day is it today?",
    "What time is it?", "What is the date today?", "Will it rain tomorrow?",
    "How old is the {job}?",
    "How long does a {animal} live?", "What does a {animal} eat?", "Why does the {animal} sleep?",
    "How fast is a {animal}?", "Where do I find a {animal}?", "How do I become a {job}?"]

UNKNOWN_THINGS = (
    "quantum physics;the moon;love;the economy;philosophy;black holes;gravity;evolution;the "
    "internet;"
    "democracy;the second world war;the Roman empire;electricity;the human brain;climate change;"
    "chemistry;the stock market;football;tennis;jazz;opera;photosynthesis;the periodic table;"
    "relativity;happiness;the meaning of life;a volcano;the speed of light;a rainbow;a steam "
    "engine;"
    "the piano;the guitar;poetry;painting;cooking;chess;mathematics;geometry;algebra;calculus;"
    "medicine;the heart;the ocean;the desert;the universe;a star;the sun;time travel;money;history;"
    "politics;religion;dreams;sleep;music;art;the weather;a neural network;blockchain;Linux;the "
    "bible;"
    "Shakespeare;Einstein;Napoleon;Mozart;the pyramids;a car;a plane;a computer;a telephone;"
    "the radio;a bridge;glass;steel;paper;silk;tea;coffee;chocolate").split(";")

CODE = {
    "hello": dict(
        ask=["hello world", "a hello world program", "a program that prints hello world"],
        name="main", say="Hello world in LANG:", why="Print one line.",
        code={
            "C": '#include <stdio.h>\n\nint main(void) {\n    printf("Hello, world!\\n");\n'
                 '    return 0;\n}',
            "C++": '#include <iostream>\n\nint main() {\n    std::cout << "Hello, world!\\n";\n'
                   '    return 0;\n}',
            "Python": 'print("Hello, world!")'}),
    "bubble": dict(
        ask=["a bubble sort", "bubble sort", "a bubble sort function", "the bubble sort algorithm"],
        name="bubble_sort", say="Here is a bubble sort in LANG:",
        why="Swap neighbours that are out of order until the array is sorted.",
        code={
            "C": 'void NAME(int *a, int n) {\n    for (int i = 0; i < n - 1; i++) {\n'
                 '        for (int j = 0; j < n - 1 - i; j++) {\n'
                 '            if (a[j] > a[j + 1]) {\n                int t = a[j];\n'
                 '                a[j] = a[j + 1];\n                a[j + 1] = t;\n            }\n'
                 '        }\n    }\n}',
            "C++": '#include <utility>\n#include <vector>\n\nvoid NAME(std::vector<int> &a) {\n'
                   '    for (size_t i = 0; i + 1 < a.size(); i++) {\n'
                   '        for (size_t j = 0; j + 1 < a.size() - i; j++) {\n'
                   '            if (a[j] > a[j + 1]) {\n'
                   '                std::swap(a[j], a[j + 1]);\n            }\n        }\n    }\n}',
            "Python": 'def NAME(a):\n    n = len(a)\n    for i in range(n - 1):\n'
                      '        for j in range(n - 1 - i):\n            if a[j] > a[j + 1]:\n'
                      '                a[j], a[j + 1] = a[j + 1], a[j]\n    return a'}),
    "factorial": dict(
        ask=["a factorial function", "factorial", "a function for the factorial",
             "a function that computes n factorial"],
        name="factorial", say="This computes the factorial in LANG:",
        why="Multiply the numbers from 2 to n.",
        code={
            "C": 'unsigned long NAME(unsigned n) {\n    unsigned long r = 1;\n'
                 '    for (unsigned i = 2; i <= n; i++)\n        r *= i;\n    return r;\n}',
            "C++": 'unsigned long NAME(unsigned n) {\n    return n < 2 ? 1 : n * NAME(n - 1);\n}',
            "Python": 'def NAME(n):\n    r = 1\n    for i in range(2, n + 1):\n        r *= i\n'
                      '    return r'}),
    "fibonacci": dict(
        ask=["a fibonacci function", "fibonacci", "the fibonacci numbers",
             "a function for the fibonacci sequence"],
        name="fib", say="This computes Fibonacci numbers in LANG:",
        why="Each number is the sum of the two before it.",
        code={
            "C": 'unsigned long NAME(int n) {\n    unsigned long a = 0, b = 1;\n'
                 '    for (int i = 0; i < n; i++) {\n        unsigned long t = a + b;\n'
                 '        a = b;\n        b = t;\n    }\n    return a;\n}',
            "C++": 'unsigned long NAME(int n) {\n    unsigned long a = 0, b = 1;\n'
                   '    while (n-- > 0) {\n        b += a;\n        a = b - a;\n    }\n    '
                   'return a;\n}',
            "Python": 'def NAME(n):\n    a, b = 0, 1\n    for _ in range(n):\n'
                      '        a, b = b, a + b\n    return a'}),
    "gcd": dict(
        ask=["the greatest common divisor", "a gcd function", "Euclid's algorithm"],
        name="gcd", say="This is Euclid's algorithm in LANG:",
        why="Replace the pair by the remainder until it is zero.",
        code={
            "C": 'int NAME(int a, int b) {\n    while (b) {\n        int t = a % b;\n        a = '
                 'b;\n'
                 '        b = t;\n    }\n    return a;\n}',
            "C++": 'int NAME(int a, int b) {\n    return b ? NAME(b, a % b) : a;\n}',
            "Python": 'def NAME(a, b):\n    while b:\n        a, b = b, a % b\n    return a'}),
    "prime": dict(
        ask=["a prime test", "a function that checks if a number is prime", "a prime number check"],
        name="is_prime", say="This tests for primes in LANG:",
        why="Try all divisors up to the square root.",
        code={
            "C": '#include <stdbool.h>\n\nbool NAME(int n) {\n    if (n < 2)\n        return '
                 'false;\n'
                 '    for (int d = 2; d * d <= n; d++)\n        if (n % d == 0)\n'
                 '            return false;\n    return true;\n}',
            "C++": 'bool NAME(int n) {\n    if (n < 2) return false;\n'
                   '    for (int d = 2; d * d <= n; d++)\n        if (n % d == 0) return false;\n'
                   '    return true;\n}',
            "Python": 'def NAME(n):\n    if n < 2:\n        return False\n    d = 2\n'
                      '    while d * d <= n:\n        if n % d == 0:\n            return False\n'
                      '        d += 1\n    return True'}),
    "binary_search": dict(
        ask=["a binary search", "binary search", "a binary search function"],
        name="binary_search", say="Here is a binary search in LANG:",
        why="Halve the range until the value is found.",
        code={
            "C": 'int NAME(const int *a, int n, int x) {\n    int lo = 0, hi = n - 1;\n'
                 '    while (lo <= hi) {\n        int mid = lo + (hi - lo) / 2;\n'
                 '        if (a[mid] == x)\n            return mid;\n        if (a[mid] < x)\n'
                 '            lo = mid + 1;\n        else\n            hi = mid - 1;\n    }\n'
                 '    return -1;\n}',
            "C++": '#include <algorithm>\n#include <vector>\n\n'
                   'bool NAME(const std::vector<int> &a, int x) {\n'
                   '    auto it = std::lower_bound(a.begin(), a.end(), x);\n'
                   '    return it != a.end() && *it == x;\n}',
            "Python": 'def NAME(a, x):\n    lo, hi = 0, len(a) - 1\n    while lo <= hi:\n'
                      '        mid = (lo + hi) // 2\n        if a[mid] == x:\n'
                      '            return mid\n        if a[mid] < x:\n            lo = mid + 1\n'
                      '        else:\n            hi = mid - 1\n    return -1'}),
    "linked_list": dict(
        ask=["a linked list", "a singly linked list", "a linked list with push"],
        name="push", say="Here is a linked list in LANG:",
        why="A node holds a value and a pointer to the next node.",
        code={
            "C": '#include <stdlib.h>\n\nstruct node {\n    int value;\n    struct node '
                 '*next;\n};\n\n'
                 'struct node *NAME(struct node *head, int value) {\n'
                 '    struct node *n = malloc(sizeof *n);\n    if (!n)\n        return head;\n'
                 '    n->value = value;\n    n->next = head;\n    return n;\n}',
            "Python": 'class Node:\n    def __init__(self, value, next=None):\n'
                      '        self.value = value\n        self.next = next\n\n\n'
                      'def NAME(head, value):\n    return Node(value, head)'}),
    "read_file": dict(
        ask=["a program that reads a file", "reading a file line by line",
             "a function that prints a file", "file reading"],
        name="print_file", say="This reads a file line by line in LANG:",
        why="Open the file, read each line, close it.",
        code={
            "C": '#include <stdio.h>\n\nint NAME(const char *path) {\n'
                 '    FILE *f = fopen(path, "r");\n    if (!f)\n        return -1;\n'
                 '    char line[256];\n    while (fgets(line, sizeof line, f))\n'
                 '        fputs(line, stdout);\n    fclose(f);\n    return 0;\n}',
            "C++": '#include <fstream>\n#include <iostream>\n#include <string>\n\n'
                   'void NAME(const std::string &path) {\n    std::ifstream in(path);\n'
                   '    std::string line;\n    while (std::getline(in, line))\n'
                   '        std::cout << line << "\\n";\n}',
            "Python": 'def NAME(path):\n    with open(path) as f:\n        for line in f:\n'
                      '            print(line, end="")'}),
    "reverse_string": dict(
        ask=["a function that reverses a string", "string reversal", "a string reverse function"],
        name="reverse", say="This reverses a string in LANG:",
        why="Swap characters from both ends.",
        code={
            "C": '#include <string.h>\n\nvoid NAME(char *s) {\n    size_t i = 0, j = strlen(s);\n'
                 '    while (i + 1 < j) {\n        char c = s[i];\n        s[i++] = s[--j];\n'
                 '        s[j] = c;\n    }\n}',
            "C++": '#include <algorithm>\n#include <string>\n\n'
                   'std::string NAME(std::string s) {\n    std::reverse(s.begin(), s.end());\n'
                   '    return s;\n}',
            "Python": 'def NAME(s):\n    return s[::-1]'}),
    "sum": dict(
        ask=["the sum of an array", "a function that sums a list", "a sum function"],
        name="sum_all", say="This sums the elements in LANG:", why="Add up all elements.",
        code={
            "C": 'long NAME(const int *a, int n) {\n    long s = 0;\n'
                 '    for (int i = 0; i < n; i++)\n        s += a[i];\n    return s;\n}',
            "C++": '#include <numeric>\n#include <vector>\n\nlong NAME(const std::vector<int> '
                   '&a) {\n'
                   '    return std::accumulate(a.begin(), a.end(), 0L);\n}',
            "Python": 'def NAME(a):\n    s = 0\n    for x in a:\n        s += x\n    return s'}),
    "maximum": dict(
        ask=["the maximum of an array", "a function that finds the largest element",
             "a maximum function"],
        name="maximum", say="This finds the largest element in LANG:",
        why="Keep the largest element seen so far.",
        code={
            "C": 'int NAME(const int *a, int n) {\n    int m = a[0];\n'
                 '    for (int i = 1; i < n; i++)\n        if (a[i] > m)\n            m = a[i];\n'
                 '    return m;\n}',
            "C++": '#include <algorithm>\n#include <vector>\n\nint NAME(const std::vector<int> '
                   '&a) {\n'
                   '    return *std::max_element(a.begin(), a.end());\n}',
            "Python": 'def NAME(a):\n    m = a[0]\n    for x in a[1:]:\n        if x > m:\n'
                      '            m = x\n    return m'}),
    "stack": dict(
        ask=["a stack", "a stack with push and pop", "a simple stack"],
        name="push", say="Here is a stack in LANG:",
        why="Keep the values in an array with a top index.",
        code={
            "C": 'struct stack {\n    int data[64];\n    int top;\n};\n\n'
                 'int NAME(struct stack *s, int x) {\n    if (s->top == 64)\n        return -1;\n'
                 '    s->data[s->top++] = x;\n    return 0;\n}\n\n'
                 'int pop(struct stack *s) {\n    return s->top ? s->data[--s->top] : -1;\n}',
            "Python": 'class Stack:\n    def __init__(self):\n        self.data = []\n\n'
                      '    def NAME(self, x):\n        self.data.append(x)\n\n'
                      '    def pop(self):\n        return self.data.pop()'}),
    "count_words": dict(
        ask=["a word counter", "a function that counts words", "word counting"],
        name="count_words", say="This counts words in LANG:",
        why="A word starts after a space.",
        code={
            "C": '#include <ctype.h>\n\nint NAME(const char *s) {\n    int n = 0, in = 0;\n'
                 '    for (; *s; s++) {\n        if (isspace((unsigned char)*s))\n'
                 '            in = 0;\n        else if (!in) {\n            in = 1;\n'
                 '            n++;\n        }\n    }\n    return n;\n}',
            "Python": 'def NAME(text):\n    return len(text.split())'}),
}
