"""The words of Pebble's conversations, written for this project."""

NAMES = """Anna Ben Clara Daniel Emma Finn Grace Henry Ida Jack Kate Leo Mia Noah Olive Paul Rosa Sam Tina Victor Wendy
Zoe Amy Bob Carl Dora Eli Fay Gus Hana Ivan June Kim Luca Maya Nina Oscar Pia Quinn Ray Sara Tom Uma Vera Will Yara
Adam Bella Cora Dan Ella Fred Gina Hugo Iris Joe Kara Lily Max Nora Otto Penny Rob Sophie Theo Una Vince Walt Alex
Billy Cathy Doris Ethan Fiona George Holly Isaac Jane Kevin Laura Mark Nancy Owen Peter Ruth Simon Tara Lucy Milo
Toby Ruby Felix Hazel Jasper Luna Marco Nell Pablo Rita Stella Tim Ursula Wanda Alice Bruno Chloe Dylan""".split()
PETS = """Biscuit Button Pepper Patches Muffin Shadow Sunny Ginger Cookie Pumpkin Whiskers Socks Bubbles Nibbles Fluffy
Rusty Pickle Peanut Waffles Ziggy Mocha Pip Toffee Daisy Domino""".split()
COLORS = "red blue green yellow orange purple pink black white brown gray".split()
THINGS_COLOR = {"sky": "blue", "grass": "green", "snow": "white", "a lemon": "yellow", "a banana": "yellow",
                "a tomato": "red", "a strawberry": "red", "coal": "black", "milk": "white", "a carrot": "orange",
                "chocolate": "brown", "a frog": "green", "a flamingo": "pink", "the sun": "yellow", "the sea": "blue",
                "an eggplant": "purple", "a leaf": "green", "a fire truck": "red", "a pumpkin": "orange",
                "an elephant": "gray", "a polar bear": "white", "mud": "brown", "a cherry": "red", "salt": "white",
                "a cucumber": "green", "a crow": "black", "a pig": "pink", "a plum": "purple", "ketchup": "red"}
ANIMALS = """fox rabbit bear mouse owl frog turtle hedgehog squirrel duck cat dog pony kitten puppy lamb goat bee
butterfly snail penguin dragon lion tiger elephant monkey parrot whale dolphin fish crab otter badger mole beaver deer
wolf robin sparrow swan goose donkey cow pig chicken panda koala giraffe zebra bat spider ant beetle ladybug
caterpillar seal octopus""".split()
SOUNDS = {"dog": "woof", "cat": "meow", "cow": "moo", "duck": "quack", "sheep": "baa", "pig": "oink", "horse": "neigh",
          "lion": "roar", "bee": "buzz", "snake": "hiss", "owl": "hoot", "frog": "ribbit", "mouse": "squeak",
          "rooster": "cock-a-doodle-doo", "wolf": "howl", "donkey": "hee-haw", "chick": "peep", "crow": "caw"}
LEGS = {"dog": 4, "cat": 4, "bird": 2, "spider": 8, "ant": 6, "bee": 6, "horse": 4, "fish": 0, "snake": 0, "cow": 4,
        "duck": 2, "chicken": 2, "octopus": 8, "frog": 4, "elephant": 4, "butterfly": 6, "person": 2, "lion": 4}
BABIES = {"dog": "puppy", "cat": "kitten", "cow": "calf", "sheep": "lamb", "horse": "foal", "duck": "duckling",
          "bear": "cub", "lion": "cub", "pig": "piglet", "goat": "kid", "hen": "chick", "frog": "tadpole",
          "kangaroo": "joey", "deer": "fawn", "swan": "cygnet", "owl": "owlet"}
HOMES = {"bird": "nest", "bee": "hive", "dog": "kennel", "spider": "web", "fish": "water", "bear": "cave",
         "horse": "stable", "rabbit": "burrow", "person": "house", "ant": "anthill", "lion": "savanna", "pig": "sty"}
OPPOSITES = {"hot": "cold", "big": "small", "up": "down", "day": "night", "happy": "sad", "fast": "slow",
             "open": "closed", "old": "young", "wet": "dry", "hard": "soft", "light": "dark", "full": "empty",
             "loud": "quiet", "high": "low", "left": "right", "in": "out", "yes": "no", "good": "bad", "long": "short",
             "rich": "poor", "clean": "dirty", "early": "late", "near": "far", "strong": "weak", "thick": "thin",
             "first": "last", "warm": "cool", "heavy": "light", "true": "false", "win": "lose", "buy": "sell",
             "push": "pull", "start": "stop", "black": "white", "north": "south", "east": "west", "brave": "afraid",
             "sweet": "sour", "deep": "shallow", "wide": "narrow", "new": "old", "above": "below", "inside": "outside"}
CAPITALS = {"France": "Paris", "Italy": "Rome", "Spain": "Madrid", "Germany": "Berlin", "England": "London",
            "Japan": "Tokyo", "China": "Beijing", "Egypt": "Cairo", "Greece": "Athens", "Norway": "Oslo",
            "Sweden": "Stockholm", "Portugal": "Lisbon", "Ireland": "Dublin", "Austria": "Vienna", "Poland": "Warsaw",
            "Canada": "Ottawa", "India": "New Delhi", "Russia": "Moscow", "Kenya": "Nairobi", "Peru": "Lima",
            "Cuba": "Havana", "Finland": "Helsinki", "Denmark": "Copenhagen", "Hungary": "Budapest", "Mexico": "Mexico City"}
CITIES = list(CAPITALS.values()) + """Boston Chicago Hamburg Lyon Milan Oxford Seattle Sydney Toronto Venice Zurich
Bergen Bristol Denver Dallas Florence Geneva Glasgow Kyoto Miami Munich Naples Osaka Porto Prague Quebec Riga
Seville Tampa York""".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
SEASONS = "spring summer autumn winter".split()
NUMBERS = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen twenty""".split()
FRUITS = "apple banana pear cherry grape lemon orange plum peach melon mango kiwi strawberry blueberry fig".split()
VEGETABLES = "carrot potato tomato onion pea bean cabbage cucumber pumpkin pepper spinach corn radish leek".split()
FOODS = """soup bread cheese pizza pasta rice cake pancakes salad cookies noodles porridge honey jam toast pie
sandwiches waffles berries popcorn""".split()
CLOTHES = "shirt hat coat sock shoe glove scarf dress sweater boot jacket".split()
TOOLS_HOME = "hammer saw spoon fork knife broom brush bucket shovel ladder needle rope".split()
VEHICLES = "car bus train bicycle boat plane truck tram ship tractor rocket taxi".split()
INSTRUMENTS = "piano guitar drum flute violin trumpet harp whistle bell".split()
SPORTS = "soccer tennis swimming running dancing climbing skating cycling fishing rowing chess".split()
JOBS = {"teacher": "teaches children at school", "baker": "makes bread and cakes", "doctor": "helps sick people",
        "farmer": "grows food and takes care of animals", "pilot": "flies planes", "sailor": "works on a ship",
        "painter": "paints pictures or walls", "firefighter": "puts out fires", "gardener": "takes care of plants",
        "cook": "makes meals", "driver": "drives a bus or a truck", "tailor": "makes clothes", "writer": "writes books",
        "carpenter": "makes things out of wood", "nurse": "takes care of sick people", "singer": "sings songs"}
WHAT_IS = {"a book": "A book is a set of pages with words or pictures that you can read.",
           "a tree": "A tree is a tall plant with a trunk, branches and leaves.",
           "rain": "Rain is water that falls in drops from the clouds.",
           "snow": "Snow is frozen water that falls from the clouds in soft white flakes.",
           "the moon": "The moon is a big ball of rock that goes around the Earth.",
           "the sun": "The sun is a star. It gives us light and warmth.",
           "a star": "A star is a huge ball of hot gas that shines in the sky.",
           "a cloud": "A cloud is made of tiny drops of water that float in the sky.",
           "ice": "Ice is water that is frozen and hard.", "a river": "A river is a long stream of water that flows to a lake or the sea.",
           "a mountain": "A mountain is a very high piece of land.", "an island": "An island is land with water all around it.",
           "a clock": "A clock is a machine that shows the time.", "a bridge": "A bridge lets people cross over water or a road.",
           "a wheel": "A wheel is a round thing that turns and helps things move.",
           "a computer": "A computer is a machine that works with numbers, words and pictures.",
           "music": "Music is sound made in a way that people like to hear.",
           "a garden": "A garden is a place where flowers and vegetables grow.",
           "a friend": "A friend is someone you like and who likes you too.",
           "a dream": "A dream is a story that your mind tells you while you sleep.",
           "a map": "A map is a picture that shows where places are.", "honey": "Honey is a sweet food made by bees.",
           "bread": "Bread is a food made from flour and water and baked in an oven.",
           "a library": "A library is a place full of books that people can borrow.",
           "wind": "Wind is air that moves.", "a rainbow": "A rainbow is a bow of colors in the sky when the sun shines through rain.",
           "a language model": "A language model is a program that guesses the next word again and again. I am a very small one.",
           "a seed": "A seed is a small thing from which a new plant can grow.",
           "a desert": "A desert is a very dry place where little rain falls.",
           "a volcano": "A volcano is a mountain that can throw out hot melted rock.",
           "the ocean": "The ocean is a very big body of salt water.",
           "a triangle": "A triangle is a shape with three sides.", "a square": "A square is a shape with four equal sides.",
           "a circle": "A circle is a perfectly round shape."}
WHY = {"the sky is blue": "Air scatters blue light more than red light, so the sky looks blue.",
       "we sleep": "We sleep so that our body and mind can rest.", "it rains": "It rains when the water in the clouds gets too heavy and falls.",
       "leaves fall in autumn": "Trees drop their leaves in autumn to save water and strength for the winter.",
       "birds fly south": "Some birds fly south because it is warmer there and they find more food.",
       "ice melts": "Ice melts because warmth turns it back into water.",
       "plants need water": "Plants need water to grow and to make their food.",
       "we eat": "We eat because food gives us the energy to live and grow.",
       "cats purr": "Cats often purr when they feel happy and safe.",
       "the moon shines": "The moon shines because light from the sun falls on it.",
       "we brush our teeth": "We brush our teeth to keep them clean and healthy.",
       "bees are important": "Bees carry pollen from flower to flower, and this helps plants make fruit."}
JOKES = [("Why did the tomato turn red?", "Because it saw the salad dressing!"),
         ("What do you call a bear with no teeth?", "A gummy bear!"),
         ("Why do cows wear bells?", "Because their horns do not work!"),
         ("What is a cat's favorite color?", "Purr-ple!"),
         ("Why did the banana go to the doctor?", "It was not peeling well!"),
         ("What do you call a sleeping dinosaur?", "A dino-snore!"),
         ("How does the moon cut its hair?", "Eclipse it!"),
         ("Why did the computer go to the doctor?", "It had a virus!"),
         ("What has ears but cannot hear?", "A field of corn!"),
         ("Why was the pebble so calm?", "Nothing could rock it!"),
         ("What did one wall say to the other wall?", "I will meet you at the corner!"),
         ("Why did the bicycle fall over?", "It was two-tired!")]
RHYMES = {"cat": "hat", "dog": "frog", "sun": "fun", "tree": "bee", "house": "mouse", "star": "car", "moon": "spoon",
          "cake": "lake", "rain": "train", "light": "night", "ball": "wall", "boat": "goat", "king": "ring",
          "bear": "chair", "snow": "bow", "bed": "red", "fish": "dish", "hill": "mill", "day": "play", "rock": "sock",
          "blue": "shoe", "nest": "rest", "song": "long", "book": "hook", "fox": "box", "pen": "hen", "bell": "shell"}
PLURALS = {"mouse": "mice", "child": "children", "foot": "feet", "tooth": "teeth", "man": "men", "woman": "women",
           "goose": "geese", "sheep": "sheep", "leaf": "leaves", "knife": "knives", "cat": "cats", "box": "boxes",
           "baby": "babies", "wolf": "wolves", "fish": "fish", "house": "houses", "dog": "dogs", "berry": "berries"}
PLACES = """forest|meadow|village|garden|mountain|beach|castle|cave|farm|lake|river|island|city|desert|jungle|school|
library|market|lighthouse|harbor|valley|park|barn|attic|bakery|tower|swamp|playground|museum|workshop|hill|orchard|
windmill|old bridge|train station|deep sea|snowy north|little town|treehouse|zoo""".replace("\n", "").split("|")
OBJECTS = """red ball|golden key|small lantern|kite|wooden boat|silver bell|blue scarf|music box|old map|paper star|
shiny stone|straw hat|little drum|magic lamp|green umbrella|toy train|glass marble|warm blanket|picture book|
silver spoon|tiny flute|red balloon|seashell|compass|snow globe|feather|clay pot|wooden spoon|yellow boot|
puzzle piece|paint brush|pocket watch|apple seed|lost letter|toy robot|teddy bear|crown|candle|violin|telescope
""".replace("\n", "").split("|")
ADJ = "little small brave curious shy clever lazy friendly quiet cheerful gentle funny tiny kind lonely sleepy young old".split()
HEROES = ANIMALS + """girl boy robot princess knight wizard pirate fisherman gardener baker farmer inventor ghost cloud
star snowman giant fairy mermaid painter tailor sailor astronaut shepherd""".split()
FEARS = {"the dark": "there was nothing in the dark that was not there in the light",
         "thunder": "thunder was only noise", "deep water": "the water could carry you if you stayed calm",
         "high places": "you could climb high if you took one small step at a time",
         "strangers": "a stranger could become a friend", "big dogs": "big dogs could be gentle",
         "the attic": "the attic was only full of old things", "loud noises": "noise could not hurt anyone"}
SUMMER_GAMES = ["hide and seek", "tag", "catch", "jump rope", "marbles", "a guessing game", "a singing game", "leapfrog"]
MORALS = ["It is good to share.", "A friend in need is a friend indeed.", "Small steps lead far.",
          "Being kind is never a waste of time.", "Everyone is good at something.", "It is brave to ask for help.",
          "Patience brings good things.", "Home is where your friends are.", "It is never too late to say sorry.",
          "You are never too small to help.", "Mistakes help us learn.", "Listening is a gift."]
WEATHER = ["sunny", "rainy", "cloudy", "windy", "snowy", "foggy", "stormy", "clear"]
DIGIT_WORDS = NUMBERS[:11]
# the closed vocabulary of spoken phrases: digits, colors, shapes, commands, a few small words
SPOKEN_SHAPES = "circle square triangle star heart diamond".split()
SPOKEN_COLORS = "red blue green yellow orange purple pink black white".split()
SPOKEN_COMMANDS = """start stop open close play pause go left right up down on off yes no hello goodbye please thanks
turn light door music window lamp radio draw show find the a and my next back call send help louder quieter""".split()
SPOKEN = DIGIT_WORDS + SPOKEN_COLORS + SPOKEN_SHAPES + SPOKEN_COMMANDS
