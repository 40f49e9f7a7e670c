/* The tensors of a Gemma 4 text model, bound by name and checked against the config. */
#ifndef BZ_MODEL_WEIGHTS_H
#define BZ_MODEL_WEIGHTS_H

#include "file/files.h"
#include "model/config.h"
#include "plan/weights.h"

/* d width, H*D query size, K*D key size, F dense FFN, E experts, Fe expert FFN, P per-layer
 * embedding. Shapes are [in, out]. A handle of 0 is absent. */
typedef struct bz_layer_weights {
    bz_weight attn_norm;            /* [d] */
    bz_weight attn_q;               /* [d, H*D] */
    bz_weight attn_q_norm;          /* [D] */
    bz_weight attn_k;               /* [d, K*D]; layers that own their cache */
    bz_weight attn_k_norm;          /* [D] */
    bz_weight attn_v;               /* [d, K*D]; absent: V is the raw K projection */
    bz_weight attn_output;          /* [H*D, d] */
    bz_weight post_attention_norm;  /* [d] */
    bz_weight ffn_norm;             /* [d] */
    bz_weight ffn_gate, ffn_up;     /* [d, F] */
    bz_weight ffn_down;             /* [F, d] */
    bz_weight post_ffw_norm;        /* [d] */
    bz_weight layer_output_scale;   /* [1]; optional */
    bz_weight encoder_output_scale; /* [1]; the same of a diffusion model's encoder */
    /* per-layer embedding */
    bz_weight inp_gate;  /* [d, P] */
    bz_weight proj;      /* [P, d] */
    bz_weight post_norm; /* [d] */
    /* mixture of experts; the router's presence marks such a layer */
    bz_weight router;          /* ffn_gate_inp [d, E] */
    bz_weight router_scale;    /* [d] */
    bz_weight pre_ffw_norm_2;  /* [d] */
    bz_weight post_ffw_norm_1; /* [d] */
    bz_weight post_ffw_norm_2; /* [d] */
    bz_weight gate_up_exps;    /* [d, 2*Fe, E]: gates, then ups; or the two below */
    bz_weight gate_exps;       /* [d, Fe, E] */
    bz_weight up_exps;         /* [d, Fe, E] */
    bz_weight down_exps;       /* [Fe, d, E] */
    bz_weight expert_scale;    /* [E]; optional */
} bz_layer_weights;

typedef struct bz_text_weights {
    bz_weight token_embd;           /* [d, V] */
    bz_weight output;               /* [d, V]; token_embd when the file has no output tensor */
    bz_weight output_norm;          /* [d] */
    bz_weight rope_freqs;           /* [D/2] of full layers; optional */
    bz_weight per_layer_token_embd; /* [P*L, V]; none in a model of embeddings */
    bz_weight per_layer_model_proj; /* [d, P*L] */
    bz_weight per_layer_proj_norm;  /* [P] */
    bz_weight dense_2;              /* [d, any] of a model of embeddings; optional */
    bz_weight dense_3;              /* [of dense_2, any]; optional */
    /* self-conditioning of a diffusion model; Fs its width */
    bz_weight self_cond_norm;               /* [d] */
    bz_weight self_cond_gate, self_cond_up; /* [d, Fs] */
    bz_weight self_cond_down;               /* [Fs, d] */
    bz_layer_weights *layer;                /* [L], owned */
    bz_weights table;                       /* all of the above; owned */
} bz_text_weights;

/* Binds every tensor of the forward pass; sets config->vocab and expert_ffn if the keys did not,
 * and the size of embeddings.
 * Every error message names the tensor. */
bz_status bz_text_weights_bind(bz_text_weights *w, bz_config *config, const bz_files *files,
                               bz_error *err);
void bz_text_weights_free(bz_text_weights *w);

#endif
