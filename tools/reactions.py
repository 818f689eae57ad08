"""Make `annotated/page/static/reactions.tsv`: reactions whose atoms can be followed.

And `respelled.tsv` beside it: the same products, written from each other atom.

    python3.11 -m venv ENV
    ENV/bin/pip install rdkit==2026.9.1
    ENV/bin/python -m tools.reactions

Each kind is a rule of textbooks, in SMARTS, which says for every atom where it goes.
RDKit applies it to molecules of our choice, keeps track of the atoms that the rule does
not name, and writes both sides as it writes any molecule, by an order of atoms that
knows nothing of the other side. Reagents and solvents stand among the reactants.
"""

import re
from pathlib import Path

from rdkit import Chem
from rdkit.Chem import AllChem

STATIC = Path(__file__).parents[1] / "annotated" / "page" / "static"
HEAD = """\
# kind, reaction, and for each atom of the product which of the reactants' atoms it is,
# both counted from 0 as they stand (made by tools/reactions.py)
"""
HEAD_RESPELLED = """\
# number of a reaction in reactions.tsv, its product written from another atom, and for
# each atom which of the product's it is there (made by tools/reactions.py)
"""
PHOSPHINE = "c1ccc(P(c2ccccc2)c2ccccc2)cc1"
PALLADIUM = f"[Pd].{PHOSPHINE}"
CARBONATE = "O=C([O-])[O-].[K+].[K+]"
BASE, DCM, DMF, THF = "CCN(CC)CC", "ClCCl", "CN(C)C=O", "C1CCOC1"
PERACID = "O=C(OO)c1cccc(Cl)c1"
AMINE = "[NX3;H1,H2;!$(NC=[O,S,N]);!$(NS)"  # closed by `:4]`
# kind: rule, reagents, reactants
KINDS = {
    "esterification": (
        "[CX3:1](=[O:2])[OH:3].[OH:4][CX4:5]>>[C:1](=[O:2])[O:4][C:5]",
        "O=S(=O)(O)O",
        "O=C(O)c1ccccc1F.CCO",
        "CC(C)CC(=O)O.OCc1ccccc1",
        "O=C(O)C1CCCCC1.CC(C)O",
    ),
    "ester hydrolysis": (
        "[CX3:1](=[O:2])[O:3][CH3,CH2:4].[OH-:5]>>[C:1](=[O:2])[OH+0:5]",
        f"[Na+].{THF}",
        "COC(=O)c1ccc(Br)cc1.[OH-]",
        "CCOC(=O)CCc1ccncc1.[OH-]",
        "COC(=O)C1CCN(C)CC1.[OH-]",
    ),
    "transesterification": (
        "[CX3:1](=[O:2])[O:3][CH3:4].[OH:5][CX4:6]>>[C:1](=[O:2])[O:5][C:6]",
        "CC(C)(C)[O-].[K+]",
        "COC(=O)c1ccc(OC)cc1.CCCCO",
        "COC(=O)CC1CCCC1.OCC(F)(F)F",
        "COC(=O)c1ccsc1.OC1CCCCC1",
    ),
    "Mitsunobu ester": (
        "[CX3:1](=[O:2])[OH:3].[OH:4][CX4:5]>>[C:1](=[O:2])[O:3][C:5]",
        f"{PHOSPHINE}.CCOC(=O)N=NC(=O)OCC.{THF}",
        "O=C(O)c1ccc([N+](=O)[O-])cc1.CC(O)CCc1ccccc1",
        "CC(=O)O.OC1CCCCC1",
        "O=C(O)c1cccnc1.OCC1CC1",
    ),
    "Mitsunobu ether": (
        "[c:1][OH:2].[OH:3][CX4:4]>>[c:1][O:2][C:4]",
        f"{PHOSPHINE}.CC(C)OC(=O)N=NC(=O)OC(C)C.{THF}",
        "COC(=O)c1ccc(O)cc1.OCc1ccccc1F",
        "Oc1cccc(Cl)c1.CC(C)(C)OC(=O)N1CCC(O)CC1",
        "Cc1ccc(O)nc1.OCCC1CCCC1",
    ),
    "amide coupling": (
        f"[CX3:1](=[O:2])[OH:3].{AMINE}:4]>>[C:1](=[O:2])[N:4]",
        f"CCN=C=NCCCN(C)C.On1nnc2ccccc21.{DMF}",
        "O=C(O)c1ccc(Cl)cc1.NCc1ccccc1",
        "CC(C)(C)OC(=O)NCC(=O)O.NC1CCCCC1",
        "O=C(O)Cc1ccc(F)cc1.C1COCCN1",
        "O=C(O)c1cc2ccccc2[nH]1.CNCc1ccncc1",
    ),
    "amide from a chloride": (
        f"[CX3:1](=[O:2])[Cl:3].{AMINE}:4]>>[C:1](=[O:2])[N:4]",
        f"{BASE}.{DCM}",
        "O=C(Cl)c1ccccc1.Nc1ccc(Br)cc1",
        "CC(=O)Cl.NCCc1ccc(OC)cc1",
        "O=C(Cl)C1CC1.CN1CCNCC1",
    ),
    "sulfonamide": (
        f"[S:1](=[O:2])(=[O:5])[Cl:3].{AMINE}:4]>>[S:1](=[O:2])(=[O:5])[N:4]",
        "c1ccncc1",
        "Cc1ccc(S(=O)(=O)Cl)cc1.Nc1ccccc1C#N",
        "CS(=O)(=O)Cl.C1CCNCC1",
        "O=S(=O)(Cl)c1cccs1.NCC1CCCO1",
    ),
    "urea": (
        f"[N:1]=[C:2]=[O:3].{AMINE}:4]>>[N:1][C:2](=[O:3])[N:4]",
        DCM,
        "O=C=Nc1ccc(Cl)cc1.CCNCC",
        "O=C=NC1CCCCC1.Nc1cccnc1",
        "CCN=C=O.OC1CCNCC1",
    ),
    "Boc on": (
        f"[C:1](=[O:2])([O:5][C:6])OC(=O)OC.{AMINE}:4]>>[C:1](=[O:2])([O:5][C:6])[N:4]",
        f"{BASE}.{DCM}",
        "CC(C)(C)OC(=O)OC(=O)OC(C)(C)C.NCc1ccc(F)cc1",
        "CC(C)(C)OC(=O)OC(=O)OC(C)(C)C.C1CCNCC1",
        "CC(C)(C)OC(=O)OC(=O)OC(C)(C)C.COC(=O)C(N)CC(C)C",
    ),
    "Boc off": (
        "[N:1][C:2](=[O:3])[O:4]C(C)(C)C>>[N:1]",
        f"O=C(O)C(F)(F)F.{DCM}",
        "CC(C)(C)OC(=O)N1CCC(c2ccccc2)CC1",
        "CC(C)(C)OC(=O)NCc1ccc(C#N)cc1",
        "CC(C)(C)OC(=O)N1CCN(c2ccncc2)CC1",
    ),
    "silyl on": (
        "[OH:1][CX4:2].[Si:3][Cl:4]>>[C:2][O:1][Si:3]",
        f"c1c[nH]cn1.{DMF}",
        "OCCc1ccccc1.CC(C)(C)[Si](C)(C)Cl",
        "CC(O)C(=O)OC.CC(C)(C)[Si](C)(C)Cl",
        "OC1CCCC1.CC[Si](Cl)(CC)CC",
    ),
    "silyl off": (
        "[C:2][O:1][Si:3]>>[C:2][OH:1]",
        f"CCCC[N+](CCCC)(CCCC)CCCC.[F-].{THF}",
        "CC(C)(C)[Si](C)(C)OCc1ccc(Br)cc1",
        "CC(C)(C)[Si](C)(C)OCCCC#C",
        "CC(C)(C)[Si](C)(C)OC1CCCCC1=O",
    ),
    "acetal": (
        "[C:1]([C,c:3])(=[O:2])[C,c:4].[OH:5][CH2:6][CH2:7][OH:8]>>"
        "[C:1]1([*:3])([*:4])[O:5][CH2:6][CH2:7][O:8]1",
        "Cc1ccc(S(=O)(=O)O)cc1.Cc1ccccc1",
        "O=C1CCCCC1.OCCO",
        "CC(=O)c1ccc(Br)cc1.OCCO",
        "CCOC(=O)CC(C)=O.OCCO",
    ),
    "Suzuki": (
        "[c:1][Br,I:2].[c:3][B:4](O)O>>[c:1]-[c:3]",
        f"{CARBONATE}.{PALLADIUM}",
        "Brc1ccccn1.OB(O)c1ccc(F)cc1",
        "COc1ccc(Br)cc1.OB(O)c1ccccc1C",
        "CC(=O)c1cccc(Br)c1.OB(O)c1ccsc1",
        "Nc1ncc(Br)cn1.OB(O)c1cccc(C(F)(F)F)c1",
    ),
    "Heck": (
        "[c:1][Br,I:2].[CH2:3]=[CH1:4]>>[c:1][CH1:3]=[CH1:4]",
        f"CC(=O)[O-].CC(=O)[O-].[Pd+2].{BASE}",
        "COc1ccc(I)cc1.C=CC(=O)OC",
        "Brc1cccnc1.C=Cc1ccccc1",
        "N#Cc1ccc(Br)cc1.C=CC(=O)N(C)C",
    ),
    "Sonogashira": (
        "[c:1][I,Br:2].[CH1:3]#[C:4]>>[c:1][C:3]#[C:4]",
        f"[Cu]I.{PALLADIUM}.{BASE}",
        "Ic1ccc(F)cc1.C#CCO",
        "CC(=O)c1ccc(I)cc1.C#Cc1ccccc1",
        "Brc1cncnc1.C#C[Si](C)(C)C",
    ),
    "Buchwald": (
        f"[c:1][Br,I:2].{AMINE}:4]>>[c:1][N:4]",
        f"CC(C)(C)[O-].[Na+].{PALLADIUM}",
        "Cc1ccc(Br)cc1.Nc1ccccc1",
        "COc1cccc(Br)c1.C1COCCN1",
        "Brc1ccc2ncccc2c1.CC(C)N",
    ),
    "aromatic substitution": (
        f"[c:1][F,Cl:2].{AMINE}:4]>>[c:1][N:4]",
        f"{CARBONATE}.{DMF}",
        "O=[N+]([O-])c1ccc(F)cc1.NCCO",
        "N#Cc1ccc(F)nc1.CN1CCNCC1",
        "Clc1ncnc2ccccc12.NC1CCCC1",
        "CC(=O)c1ccc(F)cc1.C1CCNC1",
    ),
    "ether from a phenol": (
        "[c:1][OH:2].[CX4;!$(CC=O):3][Br,I:4]>>[c:1][O:2][C:3]",
        f"{CARBONATE}.CC(C)=O",
        "O=Cc1ccc(O)cc1.BrCc1ccccc1",
        "Oc1ccc(Cl)cc1.CCI",
        "COC(=O)c1cccc(O)c1.CC(C)CBr",
    ),
    "ether from an alcohol": (
        "[CX4:1][OH:2].[CX4:3][Br,I:4]>>[C:1][O:2][C:3]",
        f"[H-].[Na+].{DMF}",
        "OCC1CCCCC1.CI",
        "CC(C)(C)OC(=O)N1CCC(O)C1.BrCc1ccc(F)cc1",
        "OCCc1cccs1.C=CCBr",
    ),
    "amine from a bromide": (
        f"{AMINE}:4].[CX4:3][Br:2]>>[N:4][C:3]",
        f"{CARBONATE}.CC#N",
        "C1CCNCC1.BrCc1ccc(C#N)cc1",
        "CNCCO.CCOC(=O)CBr",
        "OC(c1ccccc1)C1CCNCC1.BrCCCc1ccccc1",
    ),
    "thioether": (
        "[SH:1][#6:2].[CX4:3][Br,I:4]>>[*:2][S:1][C:3]",
        f"{CARBONATE}.{DMF}",
        "Sc1ccccn1.BrCC(=O)c1ccccc1",
        "CC(C)S.BrCc1ccc(Cl)cc1",
        "Sc1nc2ccccc2[nH]1.CCI",
    ),
    "chloride from an alcohol": (
        "[CX4:1][OH:2].[S:5](=[O:6])([Cl:3])[Cl:4]>>[C:1][Cl:3]",
        DCM,
        "OCc1ccc(OC)cc1.O=S(Cl)Cl",
        "OCCN1CCCC1.O=S(Cl)Cl",
        "Cc1cccc(CO)n1.O=S(Cl)Cl",
    ),
    "chloride from an acid": (
        "[CX3:1](=[O:7])[OH:2].[S:5](=[O:6])([Cl:3])[Cl:4]>>[C:1](=[O:7])[Cl:3]",
        "Cc1ccccc1",
        "O=C(O)c1ccc(F)c(F)c1.O=S(Cl)Cl",
        "O=C(O)C1CCC1.O=S(Cl)Cl",
        "CC(C)=CC(=O)O.O=S(Cl)Cl",
    ),
    "benzylic bromination": (
        "[CH3:1][c:2].[N:4][Br:3]>>[c:2][CH2:1][Br:3]",
        "ClC(Cl)(Cl)Cl",
        "Cc1ccc(C#N)cc1.O=C1CCC(=O)N1Br",
        "COC(=O)c1ccccc1C.O=C1CCC(=O)N1Br",
        "Cc1ccc2ncccc2c1.O=C1CCC(=O)N1Br",
    ),
    "reductive amination": (
        f"[CX3;$(C([#6])[#6]),$([CH1][#6]);!$(C[O,N]):1]=[O:2].{AMINE}:4]>>[C:1][N:4]",
        f"CC(=O)O[BH-](OC(C)=O)OC(C)=O.[Na+].{DCM}",
        "O=Cc1ccc(F)cc1.C1COCCN1",
        "O=C1CCCCC1.NCc1ccccc1",
        "CC(=O)c1ccncc1.CN",
        "O=CC1CCC1.CC(C)(C)OC(=O)N1CCNCC1",
    ),
    "reduction of a ketone": (
        "[CX3;$(C([#6])[#6]):1]=[O:2]>>[C:1][OH:2]",
        "[BH4-].[Na+].CO",
        "CC(=O)c1ccc(Br)cc1",
        "O=C1CCCc2ccccc21",
        "O=C(c1ccccc1)C1CCCC1",
    ),
    "reduction of an ester": (
        "[CX3:1](=[O:2])[O:3][CH3,CH2:4]>>[CH2:1][OH:2]",
        f"[AlH4-].[Li+].{THF}",
        "COC(=O)c1ccc(Cl)cc1",
        "CCOC(=O)C1CCCCC1",
        "COC(=O)Cc1cccs1",
    ),
    "reduction of a nitrile": (
        "[C:1]#[N:2]>>[CH2:1][NH2:2]",
        f"[AlH4-].[Li+].{THF}",
        "N#Cc1ccc(OC)cc1",
        "N#CCC1CCCCC1",
        "CC(C)(C#N)c1ccccc1",
    ),
    "reduction of a nitro group": (
        "[c:1][N+:2](=[O:3])[O-:4]>>[c:1][NH2+0:2]",
        "[H][H].[Pd].CO",
        "COc1ccc([N+](=O)[O-])cc1F",
        "O=[N+]([O-])c1ccc(N2CCOCC2)nc1",
        "COC(=O)c1cccc([N+](=O)[O-])c1C",
    ),
    "hydrogenation": (
        "[CX3:1]=[CX3:2]>>[C:1][C:2]",
        "[H][H].[Pd].CCO",
        "COC(=O)C=Cc1ccc(F)cc1",
        "C=C(C)c1ccc(OC)cc1",
        "O=C1CC=C(c2ccccc2)CC1",
    ),
    "oxidation of an alcohol": (
        "[CX4;H1,H2:1][OH:2]>>[C:1]=[O:2]",
        f"CS(C)=O.O=C(Cl)C(=O)Cl.{BASE}.{DCM}",
        "OCc1ccc(Br)nc1",
        "OC1CCN(C(=O)OCc2ccccc2)CC1",
        "CC(C)(C)CCO",
    ),
    "Grignard": (
        "[C,c:3][Mg:4][Br:6].[CX3;!$(C[O,N]):1]=[O:2]>>[*:3][C:1][OH:2]",
        THF,
        "Br[Mg]c1ccccc1.O=Cc1ccc(Cl)cc1",
        "C[Mg]Br.O=C1CCc2ccccc21",
        "Br[Mg]CC=C.O=CC1CCCCC1",
    ),
    "Wittig": (
        "[CX3;!$(C[O,N]):1]=[O:2].[C:3]=[P:4]>>[C:1]=[C:3]",
        THF,
        "O=Cc1ccc(F)cc1.CCOC(=O)C=P(c1ccccc1)(c1ccccc1)c1ccccc1",
        "O=C1CCCCC1.C=P(c1ccccc1)(c1ccccc1)c1ccccc1",
        "O=Cc1ccco1.CC(=O)C=P(c1ccccc1)(c1ccccc1)c1ccccc1",
    ),
    "aldol condensation": (
        "[CH1:1](=[O:2])[c:7].[CH3:3][C:4](=[O:5])[c:6]>>"
        "[c:7][CH1:1]=[CH1:3][C:4](=[O:5])[c:6]",
        "[Na+].[OH-].CCO",
        "O=Cc1ccc(Cl)cc1.CC(=O)c1ccccc1",
        "COc1ccc(C=O)cc1.CC(=O)c1ccc(F)cc1",
        "O=Cc1cccs1.CC(=O)c1cccnc1",
    ),
    "conjugate addition": (
        f"[CH2:1]=[CH1:2][C:3]=[O:5].{AMINE}:4]>>[N:4][CH2:1][CH2:2][C:3]=[O:5]",
        "CO",
        "C=CC(=O)OC.C1CCNCC1",
        "C=CC(=O)OC(C)(C)C.NCc1ccccc1",
        "C=CC(C)=O.CNC1CCCCC1",
    ),
    "opening of an epoxide": (
        f"[CH2:1]1[O:2][CH1:3]1.{AMINE}:4]>>[N:4][CH2:1][CH1:3][OH:2]",
        "CCO",
        "C1OC1COc1ccccc1.CC(C)N",
        "C1OC1c1ccc(Cl)cc1.C1COCCN1",
        "CCCCC1CO1.NCc1ccccc1",
    ),
    "epoxidation": (
        "[CX3:1]=[CX3:2].[OH:6][O:7][C:8]=[O:9]>>[C:1]1[C:2][O:6]1",
        DCM,
        f"C1CCC=CC1.{PERACID}",
        f"C=CCc1ccc(OC)cc1.{PERACID}",
        f"COC(=O)CCC=CC.{PERACID}",
    ),
    "nitration": (
        "[OX2:5][c:1][cH:2].[OH:6][N+:3](=[O:4])[O-:7]>>"
        "[O:5][c:1][c:2][N+:3](=[O:4])[O-:7]",
        "O=S(=O)(O)O",
        "Cc1ccc(O)cc1.O=[N+]([O-])O",
        "COc1ccc(C(C)=O)cc1.O=[N+]([O-])O",
        "COC(=O)c1ccc(OC)cc1.O=[N+]([O-])O",
    ),
    "Friedel–Crafts": (
        "[CX3:1](=[O:2])[Cl:3].[cH:4]1[c:5][c:6][c:7]([OX2:8])[c:9][c:10]1>>"
        "[C:1](=[O:2])[c:4]1[c:5][c:6][c:7]([O:8])[c:9][c:10]1",
        f"Cl[Al](Cl)Cl.{DCM}",
        "CC(=O)Cl.COc1ccccc1",
        "O=C(Cl)c1ccc(F)cc1.COc1ccccc1C",
        "O=C(Cl)C1CCCCC1.CCOc1ccccc1",
    ),
    "azide and alkyne": (
        "[#6:6][N:1]=[N+:2]=[N-:3].[C:4]#[CH1:5]>>"
        "[#6:6][n:1]1[n+0:2][n+0:3][c:4][c:5]1",
        "O=S(=O)([O-])[O-].[Cu+2].O",
        "[N-]=[N+]=NCc1ccccc1.C#Cc1ccc(F)cc1",
        "[N-]=[N+]=NCCCO.C#CC1CC1",
        "[N-]=[N+]=Nc1ccc(OC)cc1.C#CCCC(=O)OC",
    ),
    "Diels–Alder": (
        "[C:1]=[C:2][C:3]=[C:4].[C:5]=[C:6]>>[C:1]1[C:2]=[C:3][C:4][C:5][C:6]1",
        "Cc1ccccc1",
        "C=CC=C.O=C1C=CC(=O)O1",
        "C=C(C)C(C)=C.COC(=O)C=CC(=O)OC",
        "C1=CCC=C1.O=C1C=CC(=O)N1c1ccccc1",
        "C=CC=C.O=C1C=CC(=O)c2ccccc21",
    ),
    "metathesis": (
        "([CH2:1]=[C:2].[CH2:3]=[C:4])>>[C:2]=[C:4]",
        DCM,
        "C=CCN(CC=C)C(=O)OC(C)(C)C",
        "C=CCC(CC=C)(C(=O)OCC)C(=O)OCC",
        "C=CCOC(CC=C)c1ccccc1",
    ),
    "pyrrole": (
        "[CH3:9][C:1](=[O:2])[CH2:3][CH2:4][C:5](=[O:6])[CH3:10].[NH2:7][#6:8]>>"
        "[CH3:9][c:1]1[c:3][c:4][c:5]([CH3:10])[n:7]1[*:8]",
        "CC(=O)O",
        "CC(=O)CCC(C)=O.Nc1ccc(Cl)cc1",
        "CC(=O)CCC(C)=O.NCc1ccccc1",
        "CC(=O)CCC(C)=O.NCC(=O)OC",
    ),
    "thiazole": (
        "[CX3:1](=[O:2])[CH2:3][Br:4].[NH2:5][C:6]=[S:7]>>[c:1]1[c:3][s:7][c:6][n:5]1",
        "CCO",
        "O=C(CBr)c1ccc(F)cc1.CC(N)=S",
        "O=C(CBr)c1ccccc1.NC(N)=S",
        "CC(=O)CBr.NC(=S)c1ccncc1",
    ),
    "indole": (
        "[NH2:1][NH:2][c:3][cH:4].[CH3,CH2:5][C:6]=[O:7]>>[nH:2]1[c:3][c:4][c:5][c:6]1",
        "CC(=O)O",
        "NNc1ccccc1.O=C1CCCCC1",
        "NNc1ccc(OC)cc1.CC(=O)c1ccccc1",
        "NNc1ccc(F)cc1.O=C1CCN(C)CC1",
    ),
    "Claisen rearrangement": (
        "[CH2:1]=[C:2][C:3][O:4][c:5][cH:6]>>[OH:4][c:5][c:6][CH2:1][C:2]=[C:3]",
        "CCN(CC)c1ccccc1",
        "C=CCOc1ccc(C)cc1",
        "C=CC(C)Oc1ccc(Cl)cc1",
        "C=C(C)COc1ccc(C(=O)OC)cc1",
    ),
    "Cope rearrangement": (
        "[CH2:1]=[C:2][C:3][C:4][C:5]=[CH2:6]>>[C:3]=[C:2][C:1][C:6][C:5]=[C:4]",
        "Cc1ccccc1",
        "C=CCC(C=C)c1ccccc1",
        "C=CCC(C=C)C(=O)OC",
        "C=CC(C)C(C)C=C",
    ),
    "Beckmann rearrangement": (
        "[C:1]([#6:4])(=[N:2][OH:3])[#6:5].[OH2:6]>>[C:1](=[O:6])([*:5])[N:2][*:4]",
        "O=S(=O)(O)O",
        "ON=C1CCCCC1.O",
        "ON=C1CCCC1.O",
        "ON=C(c1ccccc1)c1ccccc1.O",
    ),
    "Baeyer–Villiger": (
        "[C:1]([C:4])(=[O:2])[C:5].[OH:6][O:7][C:8]=[O:9]>>[C:1](=[O:2])([C:5])[O:6][C:4]",
        DCM,
        f"O=C1CCCC1.{PERACID}",
        f"CC1CCC(=O)CC1.{PERACID}",
        f"O=C1CCC(c2ccccc2)CC1.{PERACID}",
    ),
}


def written(mols: list[Chem.Mol]) -> tuple[str, list[tuple[int, int]]]:
    """Return molecules as sorted text, and which molecule's which atom comes when."""
    parts = []
    for number, mol in enumerate(mols):
        # beside a metal RDKit puts atoms into brackets, which it did not when the
        # patents were written out that the model read
        text = re.sub(r"\[(Br|Cl|I|c|C)(H\d?)?\]", r"\1", Chem.MolToSmiles(mol))
        order = list(mol.GetPropsAsDict(True, True)["_smilesAtomOutputOrder"])
        parts.append((text, [(number, atom) for atom in order]))
    parts.sort(key=lambda part: part[0])
    return ".".join(text for text, _ in parts), [a for _, one in parts for a in one]


def line(kind: str, rule: str, reagents: str, reactants: str) -> str:
    """Return a reaction with the origins of its product's atoms."""
    change = AllChem.ReactionFromSmarts(rule)
    mols = [Chem.MolFromSmiles(text) for text in reactants.split(".")]
    if change.GetNumReactantTemplates() != len(mols):
        raise ValueError(f"{kind}: {reactants} does not fit the rule")
    products: dict[str, Chem.Mol] = {}
    for (product,) in change.RunReactants(mols):
        Chem.SanitizeMol(product)
        products.setdefault(Chem.MolToSmiles(product), product)
    if len(products) != 1:
        raise ValueError(f"{kind}: {reactants} gives {sorted(products)}")
    (product,) = products.values()
    # "react_idx" is which reactant, "react_atom_idx" which of its atoms
    came = {
        atom.GetIdx(): (atom.GetIntProp("react_idx"), atom.GetIntProp("react_atom_idx"))
        for atom in product.GetAtoms()
    }
    others = [Chem.MolFromSmiles(text) for text in reagents.split(".")]
    left, order = written(mols + others)
    right, places = written([product])
    number = {place: i for i, place in enumerate(order)}
    origins = [number[came[atom]] for _, atom in places]
    return f"{kind}\t{left}>>{right}\t{' '.join(map(str, origins))}\n"


def respelled(number: int, text: str) -> list[str]:
    """Return other spellings of a reaction's product, each begun at another atom."""
    product = Chem.MolFromSmiles(text)
    lines, seen = [], {text}
    for atom in range(product.GetNumAtoms()):
        other = Chem.MolToSmiles(product, rootedAtAtom=atom)
        order = product.GetPropsAsDict(True, True)["_smilesAtomOutputOrder"]
        if other not in seen:
            lines.append(f"{number}\t{other}\t{' '.join(map(str, order))}\n")
        seen.add(other)
    return lines


def main() -> None:
    lines = [
        line(kind, rule, reagents, reactants)
        for kind, (rule, reagents, *several) in KINDS.items()
        for reactants in several
    ]
    (STATIC / "reactions.tsv").write_text(HEAD + "".join(lines), "utf-8")
    products = [line.split("\t")[1].partition(">>")[2] for line in lines]
    others = [x for i, text in enumerate(products) for x in respelled(i, text)]
    (STATIC / "respelled.tsv").write_text(HEAD_RESPELLED + "".join(others), "utf-8")
    print(f"{len(lines)} reactions of {len(KINDS)} kinds")


if __name__ == "__main__":
    main()
